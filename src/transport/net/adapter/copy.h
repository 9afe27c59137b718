/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered buffers of the library from which messages are sent: a pool for copies, and two small
 * reserves for messages that must be sent even if the pool is empty.
 */
#ifndef TQ_NET_COPY_H
#define TQ_NET_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "net/adapter/objects.h"

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
	uint32_t skip; /* slab allocations still to be refused since a registration failed */
	struct tq_reserve msgs; /* for messages without data, where they don't fit inline */
	/* For DATA messages and the data of held messages. They must be sent even if the pool is
	 * empty, and each needs one buffer only. */
	struct tq_reserve pieces;
};

int tq_copies_open(struct tq_net *net);
void tq_copies_close(struct tq_net *net);

/* Returns the size of a buffer of the reserve for pieces, which is the longest DATA message. */
static inline uint32_t tq_copy_piece_max(const struct tq_net *net)
{
	return net->limits.control_data_max + (uint32_t)sizeof(struct tq_msg_data);
}

/* Takes a buffer of `len` bytes from the pool, from the reserve for pieces, or from that for
 * messages without data. Returns false if none is free. */
bool tq_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
bool tq_copy_get_piece(struct tq_net *net, uint64_t len, struct tq_sg *sg);
bool tq_copy_get_msg(struct tq_net *net, uint32_t len, struct tq_sg *sg);
/* Returns true if tq_copy_get_piece() would give a buffer. */
bool tq_copy_has_piece(const struct tq_net *net);
/* Returns a buffer to the pool or reserve that it came from. */
void tq_copy_put(struct tq_net *net, struct tq_sg *sg);
/* Returns the bytes of the pool that a buffer occupies, or 0 for a buffer of a reserve. */
uint64_t tq_copy_bytes(const struct tq_net *net, const struct tq_sg *sg);
/* Returns true if a send from this buffer should be signalled, because the pool wants the buffer
 * back soon. */
bool tq_copy_is_wanted_back(const struct tq_net *net, const struct tq_sg *sg);

#endif
