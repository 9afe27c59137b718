/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * columns.h - the tables of softhca stat: what their columns show, for the eye and for the manual.
 */
#ifndef SHCA_COLUMNS_H
#define SHCA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "render.h"

struct shca_section {
	const char *title;
	const char *key; /* of the rows, in what --json prints */
	bool per_hca;    /* where each HCA has rows of its own */
	const struct shca_column *columns;
	size_t n;
};

/* Processes and objects; the last one has no title. */
extern const struct shca_section shca_sections[];
/* The last column is there with rates only. */
extern const struct shca_section shca_counters_section;

/* What softhca.1.in has @COLUMNS@ for. */
void shca_columns_man(void);

#endif
