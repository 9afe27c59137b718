/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way to a peer in a context, when that ends. */
#include "proto/send_pair.h"

#include <stdlib.h>

#include "proto/send_pieces.h"
#include "proto/send_req.h"
#include "proto/tx_objects.h"
#include "proto/tx_tuple.h"
#include "proto/tx_tuple_table.h"

void tq_send_pair_failed(struct tq_pair *pair, int error)
{
	struct tq_send_req *s, *next;
	struct tq_tx_tuple *t;

	DL_FOREACH_SAFE2(pair->send_reqs, s, next, pnext) {
		switch (s->state) {
		case TQ_SEND_REQ_RTS:
			tq_tx_tuple_resolved(s);
			break;
		case TQ_SEND_REQ_GRANTED:
			DL_DELETE(s->tx_tuple->granted, s);
			break;
		case TQ_SEND_REQ_PIECES:
		case TQ_SEND_REQ_AGAIN:
			tq_send_pieces_end(s, error);
			continue;
		default:
			continue; /* the HCA has it: it ends with its completion */
		}
		tq_send_req_end(s, error);
	}
	for (t = pair->tx_tuples; t; t = t->hh.next)
		tq_tx_tuple_failed(t);
}

void tq_send_pair_free(struct tq_pair *pair)
{
	struct tq_send_req *s, *snext;

	DL_FOREACH_SAFE2(pair->send_reqs, s, snext, pnext) {
		free(s);
	}
	while (pair->tx_tuples)
		tq_tx_tuple_free(pair->tx_tuples);
}
