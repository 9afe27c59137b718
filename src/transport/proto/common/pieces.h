/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message that is several pieces, which the HCA gathers or scatters. */
#ifndef TQ_PROTO_PIECES_H
#define TQ_PROTO_PIECES_H

#include "proto/common/objects.h"

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

#endif
