/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * columns.h - the tables of softhca stat: their columns, and the texts for the manual.
 */
#ifndef SHCA_COLUMNS_H
#define SHCA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "render.h"

struct shca_section {
	const char *title;
	const char *key; /* key of the rows in the output of --json */
	bool per_hca;    /* true: each HCA has rows of its own under the key */
	const struct shca_column *columns;
	size_t n;
};

/* Tables of processes and objects; the last one has no title. */
extern const struct shca_section shca_sections[];
/* The last column is shown with rates only. */
extern const struct shca_section shca_counters_section;

/* Prints the text for @COLUMNS@ in softhca.1.in. */
void shca_columns_man(void);

#endif
