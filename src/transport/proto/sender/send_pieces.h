/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose receiver has asked for their data in pieces. */
#ifndef TQ_PROTO_SEND_PIECES_H
#define TQ_PROTO_SEND_PIECES_H

#include "proto/common/tx_objects.h"

/* Begins to send the first send->wanted bytes of the data in pieces. `state` is TQ_SEND_REQ_PIECES,
 * or TQ_SEND_REQ_AGAIN if the message is in a lane, too. */
void tq_send_pieces_start(struct tq_send_req *send, enum tq_send_req_state state);
/* Sends no more pieces. Ends the send, unless it is in TQ_SEND_REQ_AGAIN: then it goes back to
 * TQ_SEND_REQ_DIRECT and ends with its completion, and `error` is ignored. */
void tq_send_pieces_end(struct tq_send_req *send, int error);
/* Sends the pieces that can go now. Returns their number. */
int tq_send_pieces_poll(struct tq_core *core);

#endif
