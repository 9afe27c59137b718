/* SPDX-License-Identifier: BSD-3-Clause */
/* Users' memory: copies to and from it, several pieces, and what direct messages have in front. */
#ifndef TQ_PROTO_BUF_H
#define TQ_PROTO_BUF_H

#include <string.h>
#include <tupleq/tupleq.h>

#include "proto/common/objects.h"

/* Copies `len` bytes of the user's data, from `offset` on. */
static inline void tq_buf_pack(const struct tq_buf *buf, uint64_t offset, void *to, uint64_t len)
{
	if (buf->ops)
		buf->ops->pack(buf->arg, offset, to, len);
	else if (len)
		memcpy(to, (const char *)buf->addr + offset, len);
}

/* Copies `len` bytes to the user's memory, from `offset` on. */
static inline void tq_buf_unpack(const struct tq_buf *buf, uint64_t offset, const void *from,
				 uint64_t len)
{
	if (!len)
		return;
	if (buf->ops)
		buf->ops->unpack(buf->arg, offset, from, len);
	else
		memcpy((char *)buf->addr + offset, from, len);
}

/* ---- memory of a message that is several pieces, which the HCA gathers or scatters ---- */

/* Returns true if the caller names the memory's pieces, and at most `most`. */
bool tq_pieces_fit(const struct tq_buf *buf, uint32_t most);
/* Registers the pieces of the first `len` bytes, for the HCA to read or (`write`) to write. Returns
 * NULL if these are too many, or one can't be registered. */
struct tq_pieces *tq_pieces_reg(struct tq_core *core, const struct tq_buf *buf, uint64_t len,
				bool write, uint32_t most);
void tq_pieces_unreg(struct tq_core *core, struct tq_pieces *pieces);
/* Lists the first `len` bytes of `pieces`, or of `one` if `pieces` is NULL. Returns the list's
 * length. */
int tq_pieces_list(const struct tq_pieces *pieces, const struct tq_sg *one, uint64_t len,
		   struct tq_sg list[TQ_MAX_PIECES]);

/* ---- prefixes ---- */

/*
 * The prefix of the data of a direct message with match bits: the bits, and the user's header. At
 * its sender and its receiver it has registered memory of the library.
 */

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
