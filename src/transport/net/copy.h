/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered buffers of the library's own that messages are sent from: the pool of copies, and two
 * small reserves for what must go also when the pool is empty.
 */
#ifndef TQ_NET_COPY_H
#define TQ_NET_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/objects.h"

/* Sizes of copies: 2^8 to 2^30 bytes, and room for a header. */
#define TQ_COPY_MIN_BITS 8
#define TQ_COPY_CLASSES  23

struct tq_slab;

/* Buffers of one size that are there from the start. */
struct tq_reserve {
	struct tq_reg reg;
	void *mem;
	void *free; /* stack, linked through their first word */
};

struct tq_copies {
	struct tq_slab *slabs[TQ_COPY_CLASSES]; /* by size; those with a free buffer come first */
	uint64_t bytes;                         /* of all slabs */
	uint32_t skip;          /* slabs that aren't even tried, after a registration has failed */
	struct tq_reserve msgs; /* for messages without data, where they don't fit inline */
	/* For DATA, and for held messages' data: those have to go also when no copies can be had,
	 * and nothing else is needed for that. */
	struct tq_reserve pieces;
};

int tq_copies_open(struct tq_net *net);
void tq_copies_close(struct tq_net *net);

/* Returns the bytes of a DATA message at most, which a buffer of the reserve for pieces has. */
static inline uint32_t tq_copy_piece_max(const struct tq_net *net)
{
	return net->limits.eager_max + (uint32_t)sizeof(struct tq_msg_data);
}

/* Each gives a buffer of `len` bytes: of the pool; of the reserve for pieces; of that for messages
 * without data. Returns false if there is none. */
bool tq_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
bool tq_copy_get_piece(struct tq_net *net, uint64_t len, struct tq_sg *sg);
bool tq_copy_get_msg(struct tq_net *net, uint32_t len, struct tq_sg *sg);
/* Returns true if tq_copy_get_piece() would give a buffer. */
bool tq_copy_has_piece(const struct tq_net *net);
/* Takes a buffer back, wherever it is from. */
void tq_copy_put(struct tq_net *net, struct tq_sg *sg);
/* Returns the bytes of the pool that a buffer takes; 0: it is of a reserve. */
uint64_t tq_copy_bytes(const struct tq_net *net, const struct tq_sg *sg);

#endif
