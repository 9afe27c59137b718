/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prefix of the data of a direct message with match bits: the bits, and the user's header. At
 * its sender and its receiver it has registered memory of the library.
 */
#ifndef TQ_PROTO_PREFIX_H
#define TQ_PROTO_PREFIX_H

#include "proto/common/objects.h"

/* The adapter reads or writes all from `bits` on. */
struct tq_prefix {
	struct tq_reg *reg;
	struct tq_prefix *next; /* core->prefixes.free */
	uint64_t bits;          /* little-endian */
	uint8_t header[TQ_HEADER_MAX];
};

/* Returns memory for a prefix; NULL: there is none that is registered. */
struct tq_prefix *tq_prefix_get(struct tq_core *core);
void tq_prefix_put(struct tq_core *core, struct tq_prefix *prefix);
/* Returns the memory for prefixes that nobody reads; NULL: there is none that is registered. */
struct tq_prefix *tq_prefix_sink(struct tq_core *core);
void tq_prefixes_destroy(struct tq_core *core);

/* Describes the memory for the network. */
static inline struct tq_sg tq_prefix_sg(const struct tq_ctx *ctx, struct tq_prefix *prefix)
{
	return (struct tq_sg){
		.addr = &prefix->bits,
		.len = ctx->prefix_len,
		.reg = prefix->reg,
	};
}

#endif
