/* SPDX-License-Identifier: BSD-3-Clause */
#include "response.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "arrival.h"
#include "entry.h"
#include "lib.h"
#include "ni.h"
#include "peer.h"

struct p4_response {
	struct p4_send send;
	struct p4_work work;
	struct p4_ni *ni;
	struct p4_peer *peer;
	struct p4_wire_response wire;
	struct tq_buf buf;
	struct p4_arrival *arrival; /* NULL: nobody waits for the end of the send */
	void (*on_replied)(struct p4_arrival *arrival, int error);
};

static void on_sent(struct p4_send *send, int error)
{
	struct p4_response *response = (struct p4_response *)send;

	p4_lock();
	if (response->arrival)
		response->on_replied(response->arrival, error);
	response->ni->nusers--;
	p4_unlock_run();
	free(response);
}

static void send_response(struct p4_work *work)
{
	struct p4_response *response =
		(struct p4_response *)((char *)work - offsetof(struct p4_response, work));
	struct tq_req *req;
	int rc;

	if (p4_peer_put_off(response->peer, work))
		return;
	rc = p4_peer_rank(response->peer, response->ni, P4_REPLY);
	if (rc >= 0)
		rc = tq_send_bits(response->ni->ctx[P4_REPLY], rc, 0, &response->wire,
				  &response->buf, TQ_SEND_MATCHED, &response->send, &req);
	if (rc)
		on_sent(&response->send, rc < 0 ? rc : 0);
}

/* Returns true if the initiator waits for an answer. */
static bool is_awaited(const struct p4_wire_request *req)
{
	return req->cookie &&
	       (req->kind != P4_PUT && req->kind != P4_ATOMIC ? true
							      : req->ack_req != PTL_NO_ACK_REQ);
}

static uint8_t fail_of(const struct p4_arrival *arrival)
{
	/* This acknowledgement says no more than that the message is done with. */
	return arrival->req.ack_req == PTL_OC_ACK_REQ ? PTL_NI_OK : arrival->fail;
}

bool p4_response_start(struct p4_arrival *arrival, const struct tq_buf *buf,
		       void (*on_replied)(struct p4_arrival *arrival, int error))
{
	const struct p4_wire_request *req = &arrival->req;
	struct p4_response *response;

	p4_assert_held();
	if (arrival->pt->ni->closing || (!buf && !is_awaited(req)))
		return false;
	response = calloc(1, sizeof(*response));
	if (!response)
		return false;
	response->send.end = on_sent;
	response->ni = arrival->pt->ni;
	response->peer = p4_peer_get(req->nid, req->pid);
	if (!response->peer) {
		free(response);
		return false;
	}
	response->wire = (struct p4_wire_response){
		.cookie = req->cookie,
		.mlength = htole64(arrival->mlength),
		.offset = htole64(arrival->offset),
		.fail = fail_of(arrival),
		.list = arrival->list,
		.flags = !buf && arrival->entry && (arrival->entry->options & PTL_ME_ACK_DISABLE)
				 ? P4_SILENT
				 : 0,
	};
	if (buf) {
		response->buf = *buf;
		response->arrival = arrival;
		response->on_replied = on_replied;
	}
	response->ni->nusers++;
	p4_defer(&response->work, send_response);
	return buf;
}
