/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dm.h - device memory: memory of the adapter, which the process maps, and regions of it.
 */
#ifndef SHCA_DM_H
#define SHCA_DM_H

#include "hca/memory/mr.h"

struct shca_dm {
	struct ibv_dm ibv;
	char *memory;
	uint64_t length;          /* bytes that were asked for */
	uint64_t taken;           /* bytes of the adapter's memory */
	struct shca_dm *imported; /* memory that was imported as this one, or NULL */
	_Atomic uint32_t refs;    /* memory regions in it */
	struct shca_context_object context_node;
};

/* Implement the libibverbs calls of the same names. */
struct ibv_dm *shca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int shca_free_dm(struct ibv_dm *dm);

/* Gives the memory back to the adapter; the struct, and what the process has mapped, stays. */
void shca_dm_end(struct shca_dm *dm);

#endif
