/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose receiver has asked for their data in pieces. */
#ifndef TQ_PROTO_SEND_PIECES_H
#define TQ_PROTO_SEND_PIECES_H

#include "proto/tx_objects.h"

/* Begins to send the data of a message in pieces, as much as `wanted`. */
void tq_send_pieces_start(struct tq_send_req *send, enum tq_send_req_state state);
/* Ends that; no more are sent. */
void tq_send_pieces_end(struct tq_send_req *send, int error);
/* Sends the pieces that can go now. Returns their number. */
int tq_send_pieces_poll(struct tq_core *core);

#endif
