/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a message's data that come through control buffers. */
#ifndef TQ_PROTO_FETCH_PIECES_H
#define TQ_PROTO_FETCH_PIECES_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* Copies pieces that were kept to the user's buffer, and ends the receive if none is to come. */
void tq_fetch_pieces_copy(struct tq_recv_req *recv);
/* Frees pieces that were kept, without a copy. */
void tq_fetch_pieces_drop(struct tq_recv_req *recv);
/* Handles a piece, which is checked. Returns true if the buffer is kept. */
bool tq_fetch_pieces_on_data(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_data *m, uint32_t len, struct tq_bounce *bounce);

#endif
