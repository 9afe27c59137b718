/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's reactions to the receiver's answers. tq_msg_check() has checked the messages. */
#ifndef TQ_PROTO_ANSWER_H
#define TQ_PROTO_ANSWER_H

#include "proto/common/msg.h"
#include "proto/common/tx_objects.h"

void tq_answer_on_srqn(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_srqn *msg);
void tq_answer_on_refuse(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_refuse *msg);
void tq_answer_on_recall(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_recall *msg);
void tq_answer_on_fin(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_answer *msg);
void tq_answer_on_cts(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_cts *msg);
void tq_answer_on_cts_pieces(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_cts *msg);
void tq_answer_on_cts_direct(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_answer *msg);
void tq_answer_on_cts_held(struct tq_core *core, struct tq_peer *peer,
			   const struct tq_msg_cts_held *msg);
/* Ends a send whose RDMA write, which a CTS asked for, has ended, and sends WRITTEN unless that
 * failed. */
void tq_answer_on_write_done(struct tq_send_req *send, int status);

#endif
