/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - sending a request, and what the listener's kernel does with it.
 */
#include "request.h"

#include <errno.h>
#include <string.h>

#include "bind.h"
#include "connection.h"
#include "deadline.h"
#include "events.h"
#include "message.h"
#include "route.h"

#define MAX_RETRY 7 /* in the fields of a request */
#define PSN_MASK  0xffffffu
#define PSN_STEP  0x9e3779u /* odd, so that the PSNs of successive connections differ */

/* Returns the room for the program's data in a request to that address. */
static uint8_t room_for_data(const struct shca_cm_id *id)
{
	unsigned all =
		shca_message_is_datagram(id) ? SHCA_MESSAGE_SIDR_REQ_DATA : SHCA_MESSAGE_REQ_DATA;

	return (uint8_t)(id->destination.family == SHCA_AF_IB ? all : all - SHCA_MESSAGE_IP_HEADER);
}

static uint32_t next_psn(struct shca_fabric *fabric)
{
	return (uint32_t)(fabric->hdr->seed + ++fabric->hdr->cm.psns * (uint64_t)PSN_STEP) &
	       PSN_MASK;
}

/* ---- at the listener ---- */

/* Returns the type of QP that answers one of that type. */
static uint8_t answering_type(uint8_t qp_type)
{
	return qp_type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : qp_type;
}

/* Makes the identifier of the passive end. Returns NULL without memory. */
static struct shca_cm_id *make_passive(struct shca_fabric *fabric, struct shca_cm_id *from,
				       const struct shca_cm_id *listener)
{
	uint32_t idx;
	struct shca_cm_id *id = shca_cells_take(fabric, SHCA_CM_ID, &idx);

	if (!id)
		return NULL;
	id->proc = listener->proc;
	id->node = listener->node;
	id->channel = listener->channel;
	id->port_space = listener->port_space;
	id->qp_type = answering_type(from->qp_type);
	id->tos = listener->tos;
	id->ack_timeout = listener->ack_timeout;
	id->state = SHCA_CM_CONNECT;
	id->link = shca_message_is_datagram(from) ? SHCA_CM_LINK_SIDR_RCVD : SHCA_CM_LINK_REQ_RCVD;
	id->source = from->destination;
	id->destination = from->source;
	id->hca = from->dest_hca;
	id->dest_hca = from->hca;
	id->peer = shca_cm_id_index(fabric, from) + 1;
	id->listener = shca_cm_id_index(fabric, listener) + 1;
	id->psn = next_psn(fabric);
	id->remote_psn = from->psn;
	id->remote_qpn = from->param.qp_num;
	id->responder_resources = from->param.initiator_depth;
	id->initiator_depth = from->param.responder_resources;
	id->retry_count = from->param.retry_count;
	id->rnr_retry_count = from->param.rnr_retry_count;
	id->used = 1;
	from->peer = idx + 1;
	return id;
}

/* Reports the request to the listener's program, when it arrives. Returns false without memory. */
static bool report(struct shca_fabric *fabric, const struct shca_cm_id *from, uint64_t arrives_at,
		   const struct shca_cm_id *id, const struct shca_cm_id *listener)
{
	struct shca_cm_event *event =
		shca_events_add_request(fabric, listener, arrives_at, shca_cm_id_index(fabric, id));
	struct rdma_ucm_conn_param *conn;

	if (!event)
		return false;
	if (shca_message_is_datagram(from)) {
		/* A SIDR_REQ says nothing of the sender's QP. */
		shca_message_copy_data(event->resp.param.ud.private_data,
				       &event->resp.param.ud.private_data_len,
				       from->param.private_data, from->param.private_data_len,
				       room_for_data(from));
		return true;
	}
	conn = &event->resp.param.conn;
	*conn = from->param;
	conn->responder_resources = id->responder_resources;
	conn->initiator_depth = id->initiator_depth;
	shca_message_copy_data(conn->private_data, &conn->private_data_len,
			       from->param.private_data, from->param.private_data_len,
			       room_for_data(from));
	event->resp.ece = from->ece;
	return true;
}

/* ---- at the sender ---- */

/* Ends a request that was refused. The refusal arrives at time `at`. */
static void refused(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at, unsigned reason)
{
	struct shca_cm_event *event;

	id->link = SHCA_CM_LINK_IDLE;
	id->deadline = 0;
	event = shca_events_add_at(fabric, id, at, SHCA_CM_REJECTED, (int)reason);
	if (event)
		event->resp.param.conn.private_data_len = SHCA_MESSAGE_REJ_DATA;
}

static void nobody_listens(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	if (!shca_message_is_datagram(id)) {
		refused(fabric, id, at, SHCA_REJ_INVALID_SERVICE_ID);
		return;
	}
	id->link = SHCA_CM_LINK_IDLE;
	id->deadline = 0;
	shca_events_add_at(fabric, id, at, SHCA_CM_UNREACHABLE, SHCA_SIDR_UNSUPPORTED);
}

static bool takes_type(const struct shca_cm_id *listener, const struct shca_cm_id *from)
{
	return !listener->qp_type || listener->qp_type == answering_type(from->qp_type);
}

/* Delivers a request. A listener whose backlog is full drops the request silently, and the sender
 * will send it again. */
static void deliver(struct shca_fabric *fabric, struct shca_cm_id *from)
{
	struct shca_cm_id *listener = shca_bind_listener(fabric, from), *id;
	uint64_t there = shca_message_arrives(fabric, from, 0);
	uint64_t back = shca_message_arrives(fabric, from, there);

	if (!shca_message_is_datagram(from) && shca_connection_is_stale(fabric, from, there))
		return;
	if (!listener) {
		nobody_listens(fabric, from, back);
		return;
	}
	if (!takes_type(listener, from)) {
		refused(fabric, from, back, SHCA_REJ_CONSUMER);
		return;
	}
	if (!listener->backlog)
		return;
	id = make_passive(fabric, from, listener);
	if (!id)
		return;
	if (!report(fabric, from, there, id, listener)) {
		from->peer = 0;
		id->used = 0;
		return;
	}
	listener->backlog--;
}

static uint64_t patience(const struct shca_cm_id *id)
{
	return shca_message_is_datagram(id) ? SHCA_DEADLINE_SIDR : SHCA_DEADLINE_RESEND;
}

int shca_request_send(struct shca_fabric *fabric, struct shca_cm_id *id,
		      const struct rdma_ucm_connect *cmd)
{
	const struct rdma_ucm_conn_param *param = &cmd->conn_param;

	if (!param->valid || id->state != SHCA_CM_ROUTED ||
	    param->private_data_len > room_for_data(id))
		return -EINVAL;
	id->param = *param;
	if (id->param.retry_count > MAX_RETRY)
		id->param.retry_count = MAX_RETRY;
	if (id->param.rnr_retry_count > MAX_RETRY)
		id->param.rnr_retry_count = MAX_RETRY;
	id->ece = cmd->ece;
	id->responder_resources = param->responder_resources;
	id->initiator_depth = param->initiator_depth;
	id->retry_count = id->param.retry_count;
	id->rnr_retry_count = id->param.rnr_retry_count;
	id->psn = next_psn(fabric);
	id->state = SHCA_CM_CONNECT;
	id->link = shca_message_is_datagram(id) ? SHCA_CM_LINK_SIDR_SENT : SHCA_CM_LINK_REQ_SENT;
	id->retries = SHCA_DEADLINE_RETRIES;
	shca_deadline_set(fabric, id, 0, patience(id));
	deliver(fabric, id);
	return 0;
}

void shca_request_resend(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_id *peer = id->peer ? shca_cm_id(fabric, id->peer - 1) : NULL;

	if (!id->retries) {
		id->link = SHCA_CM_LINK_IDLE;
		id->deadline = 0;
		id->peer = 0;
		if (peer)
			peer->peer = 0;
		shca_events_add(fabric, id, SHCA_CM_UNREACHABLE, -ETIMEDOUT);
		return;
	}
	id->retries--;
	if (peer && !shca_message_is_datagram(id)) {
		shca_deadline_set(fabric, id, 0, SHCA_DEADLINE_MRA);
		return;
	}
	shca_deadline_set(fabric, id, 0, patience(id));
	if (!peer)
		deliver(fabric, id);
}
