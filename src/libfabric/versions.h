/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of libfabric 1 that programs built for it pass, and whose names libfabric 2 warns of or no
 * longer has.
 */
#ifndef TF_VERSIONS_H
#define TF_VERSIONS_H

/* Address formats and protocols with this bit are a provider's own. */
#define TF_PROV_SPECIFIC (1u << 31)

/* Values of mr_mode up to API 1.4. */
#define TF_MR_UNSPEC   0
#define TF_MR_BASIC    (1 << 0)
#define TF_MR_SCALABLE (1 << 1)

/* A flag of operations. */
#define TF_PRIORITY (1ULL << 22)

#endif
