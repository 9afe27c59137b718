/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting the data of matched messages. */
#ifndef TQ_PROTO_FETCH_H
#define TQ_PROTO_FETCH_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* ---- pieces, which come through control buffers ---- */

/* Handles a piece, which is checked. Returns true if the buffer is kept. */
bool tq_fetch_pieces_on_data(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_data *m, uint32_t len, struct tq_bounce *bounce);

/* Gets the message's data to the receive that it matches; both are in no queue. Frees the message.
 */
void tq_fetch(struct tq_recv_req *recv, struct tq_unexpected *message);
/* Ends a receive that takes a message whose data its user has; both are in no queue. Frees the
 * message. */
void tq_fetch_end_stored(struct tq_recv_req *recv, struct tq_unexpected *message);
/* Copies the data of an eager message to a receive in no queue, and ends the receive. Not to be
 * called in service mode. */
void tq_fetch_at_once(struct tq_recv_req *recv, struct tq_pair *pair, uint64_t tag,
		      const void *data, uint64_t len);
/* Ends a receive whose data are in the library's memory (bounced), and copies them to the user's:
 * now or, in service mode, by a thread of the user's. */
void tq_fetch_unbounce(struct tq_recv_req *recv);
/* Copies data that waited for a thread of the user's, of long messages a part. Returns the number
 * of copies. */
int tq_fetch_poll(struct tq_core *core);
/* Ends the receives whose data were to come from a failed peer, except RDMA reads. */
void tq_fetch_fail(struct tq_pair *pair, int error);
/* Ends all receives of a pair that is being freed. */
void tq_fetch_drop(struct tq_pair *pair);

/* Handles WRITTEN, which is checked: ends the receive, or asks for pieces if the write failed. */
void tq_fetch_on_written(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_written *m);
/* Ends the receive of an RDMA read that has ended, well or not. */
void tq_fetch_on_read_done(struct tq_recv_req *recv, int status);

#endif
