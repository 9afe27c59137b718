/* SPDX-License-Identifier: BSD-3-Clause */
/* unpolled.h - the completions in a CQ that no poll has returned, for processes other than its
 * owner. */
#ifndef SHCA_UNPOLLED_H
#define SHCA_UNPOLLED_H

#include "fabric.h"

/* Returns the number of completions that no poll has returned. Completions that are being written
 * may be missing. */
uint64_t shca_unpolled_count(const struct shca_fabric *fabric, const struct shca_cq_entry *cq);
/* Returns true if there may be a completion, also one whose producer died while it wrote it. */
bool shca_unpolled_any(const struct shca_fabric *fabric, const struct shca_cq_entry *cq);

#endif
