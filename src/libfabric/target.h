/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of other processes, at their target. */
#ifndef TF_TARGET_H
#define TF_TARGET_H

#include "active.h"

/* Carries a request out (tf_carry_out). */
int tf_target(struct tf_domain *domain, const struct tf_request *request, void *data, size_t *len);

#endif
