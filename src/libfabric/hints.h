/* SPDX-License-Identifier: BSD-3-Clause */
/* The wishes of a caller of fi_getinfo(). */
#ifndef TF_HINTS_H
#define TF_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* The bits of mr_mode that registrations ask of the user. */
#define TF_MR_MODE (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* Returns true if the hints can be met. `hints` may be NULL. */
bool tf_hints_fit(uint32_t version, const struct fi_info *hints);
/* Returns the capabilities for hints that fit. */
uint64_t tf_hints_caps(uint32_t version, const struct fi_info *hints);
/* Returns mr_mode for a caller with these hints that gets these capabilities. */
int tf_hints_mr_mode(uint32_t version, const struct fi_info *hints, uint64_t caps);

#endif
