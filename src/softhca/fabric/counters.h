/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h - an HCA's counters. Counters on the way of a message are kept in QPs, each with one
 * writer; an HCA's count is the sum of its QPs' counts, of those of QPs that are gone, and of what
 * is counted in the HCA itself.
 */
#ifndef SHCA_COUNTERS_H
#define SHCA_COUNTERS_H

#include "fabric.h"

extern const char *const shca_counter_names[SHCA_C_COUNT];
extern const char *const shca_counter_help[SHCA_C_COUNT]; /* for the manual */

/* Reads all counters of an HCA since the last reset. */
void shca_counters_read(const struct shca_fabric *fabric, const struct shca_hca *hca,
			uint64_t counters[SHCA_C_COUNT]);
/* Makes all counters of an HCA 0. */
void shca_counters_reset(const struct shca_fabric *fabric, struct shca_hca *hca);
/* Adds a QP's counts to the HCA's, before the QP's entry is freed. */
void shca_counters_fold(struct shca_hca *hca, struct shca_qp_entry *qp);

#endif
