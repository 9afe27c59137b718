/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of sends that are under way to a peer in a context. */
#include "proto/sender/send_pair.h"

#include <stdlib.h>

#include "proto/common/tx_objects.h"
#include "proto/sender/send_pieces.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple.h"
#include "proto/sender/tx_tuple_table.h"

void tq_send_pair_fail(struct tq_pair *pair, int error)
{
	struct tq_send_req *send, *next;
	struct tq_tx_tuple *tuple;

	DL_FOREACH_SAFE2(pair->send_reqs, send, next, pair_next) {
		switch (send->state) {
		case TQ_SEND_REQ_RTS:
			tq_tx_tuple_resolve(send);
			break;
		case TQ_SEND_REQ_GRANTED:
			DL_DELETE(send->tx_tuple->granted, send);
			break;
		case TQ_SEND_REQ_PIECES:
		case TQ_SEND_REQ_AGAIN:
			tq_send_pieces_end(send, error);
			continue;
		default:
			continue; /* the HCA has the message: the send ends with its completion */
		}
		tq_send_req_end(send, error);
	}
	for (tuple = pair->tx_tuples; tuple; tuple = tuple->hh.next)
		tq_tx_tuple_fail(tuple);
}

void tq_send_pair_free(struct tq_pair *pair)
{
	struct tq_send_req *send, *next;

	DL_FOREACH_SAFE2(pair->send_reqs, send, next, pair_next) {
		free(send);
	}
	while (pair->tx_tuples)
		tq_tx_tuple_free(pair->tx_tuples);
}
