/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: its states, and its end. */
#ifndef TQ_PROTO_RECV_REQ_H
#define TQ_PROTO_RECV_REQ_H

#include "proto/common/rx_objects.h"

extern const struct tq_states tq_recv_req_states;

/* Returns a receive, in no queue; NULL: no memory. */
struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user);
/* Changes the state; the one place that does. */
static inline void tq_recv_req_set_state(struct tq_recv_req *recv, enum tq_recv_req_state to)
{
	tq_states_change(&tq_recv_req_states, recv->req.core->trace, recv, recv->state, to);
	recv->state = to;
}
/* Ends a receive that is in no queue, and gives its memory back. */
void tq_recv_req_end(struct tq_recv_req *recv, int error);
/* Ends a receive all of whose wanted bytes are there. */
void tq_recv_req_complete(struct tq_recv_req *recv);
/* Returns the receive that a message of the peer names, if the receive is in that state; NULL:
 * none, and the message is counted as dropped. */
struct tq_recv_req *tq_recv_req_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle, enum tq_recv_req_state state);
/* Ends the start of a receive. Returns the result of the user's call: 0 and the request, or 1 and
 * the status if the receive has ended already, and is released. */
int tq_recv_req_finish_start(struct tq_recv_req *recv, struct tq_req **req,
			     struct tq_status *status);
/* Enters the receive into pair->active as one whose data are under way, or takes it out of there,
 * before its end. */
void tq_recv_req_enter_active(struct tq_recv_req *recv, enum tq_recv_req_state state);
void tq_recv_req_leave_active(struct tq_recv_req *recv);
/* Ends a receive, in no list, whose sender is lost: with `error`, when the SRQ that the receive may
 * be in is gone. */
void tq_recv_req_end_lost(struct tq_recv_req *recv, int error);

#endif
