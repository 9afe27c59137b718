/* SPDX-License-Identifier: BSD-3-Clause */
/* What mem.c and copy.c share. */
#ifndef TQ_NET_MEM_H
#define TQ_NET_MEM_H

#include "net/net.h"

#define TQ_PAGE 4096u

/* Sizes of copies: 2^8 to 2^30 bytes, and room for a header. */
#define TQ_COPY_MIN_BITS 8
#define TQ_COPY_CLASSES  23

struct tq_slab;

/* Memory of the library's own. */
struct tq_own {
	void *addr;
	size_t len;
	struct ibv_mr *mr;
	struct tq_own *next;
};

struct tq_mem {
	/* The whole address space, by ODP: [1] to be written, too, for which it brings in no page
	 * that may only be read. */
	struct ibv_mr *all[2];
	struct tq_reg all_reg[2];
	struct tq_own *own;
	struct tq_mr *abandoned; /* list */
	_Atomic bool full;       /* a registration has failed for lack of memory */
	bool warned;             /* that this makes messages slow */
	struct ibv_mr *sink;
	void *trash; /* NULL: the sink is a null MR */
	size_t trash_len;

	/* copy.c */
	struct tq_slab *slabs[TQ_COPY_CLASSES]; /* of each size; those with a free buffer first */
	uint64_t copies;                        /* bytes of all slabs */
	uint32_t skip; /* a registration failed: so many more slabs aren't even tried */
};

/* -ENOMEM: the first slab can't be registered. */
int tq_copies_open(struct tq_net *net);
void tq_copies_close(struct tq_net *net);

#endif
