/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.c - the states of a connection at its two ends (IBA 12.9), as Linux's connection
 * manager has them. A function at_*() is what the kernel of the receiver does with a message. The
 * states change when the message is sent, and `at` says when it arrives, which is when the program
 * learns of it; 0: at once.
 */
#include "connection.h"

#include <errno.h>
#include <string.h>

#include "deadline.h"
#include "events.h"
#include "message.h"

static struct shca_cm_id *peer_of(const struct shca_fabric *fabric, const struct shca_cm_id *id)
{
	return id->peer ? shca_cm_id(fabric, id->peer - 1) : NULL;
}

/* Lets the two ends of a connection forget each other. */
static void part(const struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	if (peer)
		peer->peer = 0;
	id->peer = 0;
}

static void set_link(struct shca_cm_id *id, enum shca_cm_link link)
{
	id->link = (uint8_t)link;
	id->deadline = 0;
}

static void enter_timewait(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	set_link(id, SHCA_CM_LINK_TIMEWAIT);
	shca_deadline_set(fabric, id, at, SHCA_DEADLINE_TIMEWAIT);
}

static void await_answer(struct shca_fabric *fabric, struct shca_cm_id *id, enum shca_cm_link link)
{
	set_link(id, link);
	id->retries = SHCA_DEADLINE_RETRIES;
	shca_deadline_set(fabric, id, 0, SHCA_DEADLINE_RESEND);
}

/* Reports the end of a connection, once. */
static void report_disconnected(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at,
				int status)
{
	if (id->state != SHCA_CM_CONNECT)
		return;
	id->state = SHCA_CM_DISCONNECT;
	shca_events_add_at(fabric, id, at, SHCA_CM_DISCONNECTED, status);
}

static void send_dreq(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at);
static void at_rej(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at, uint8_t reason,
		   const uint8_t *data, uint8_t len);

/* ---- stale connections ---- */

/* Returns true if a node takes the QP at the other end of a connection for connected. */
static bool knows_qp(const struct shca_cm_id *id)
{
	switch (id->link) {
	case SHCA_CM_LINK_REQ_RCVD:
	case SHCA_CM_LINK_REP_SENT:
	case SHCA_CM_LINK_REP_RCVD:
	case SHCA_CM_LINK_ESTABLISHED:
	case SHCA_CM_LINK_DREQ_SENT:
	case SHCA_CM_LINK_DREQ_RCVD:
		return true;
	default:
		return false;
	}
}

bool shca_connection_is_stale(struct shca_fabric *fabric, struct shca_cm_id *from, uint64_t at)
{
	unsigned node = fabric->hdr->hcas[from->dest_hca - 1].node;

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (!id->used || id->node != node || id->dest_hca != from->hca ||
		    id->remote_qpn != from->param.qp_num || !knows_qp(id))
			continue;
		at_rej(fabric, from, shca_message_arrives(fabric, from, at), SHCA_REJ_STALE, NULL,
		       0);
		if (id->link == SHCA_CM_LINK_ESTABLISHED)
			send_dreq(fabric, id, at);
		return true;
	}
	return false;
}

/* ---- REP and RTU ---- */

/* The active end gets the answer. */
static void at_rep(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at,
		   const struct shca_cm_id *from)
{
	const struct rdma_ucm_conn_param *sent = &from->param;
	struct rdma_ucm_conn_param *conn;
	struct shca_cm_event *event;

	set_link(id, SHCA_CM_LINK_REP_RCVD);
	id->remote_qpn = sent->qp_num;
	id->remote_psn = from->psn;
	id->responder_resources = sent->initiator_depth;
	id->initiator_depth = sent->responder_resources;
	id->rnr_retry_count = sent->rnr_retry_count;
	event = shca_events_add_at(fabric, id, at, SHCA_CM_CONNECT_RESPONSE, 0);
	if (!event)
		return;
	conn = &event->resp.param.conn;
	conn->qp_num = sent->qp_num;
	conn->responder_resources = id->responder_resources;
	conn->initiator_depth = id->initiator_depth;
	conn->flow_control = sent->flow_control;
	conn->rnr_retry_count = sent->rnr_retry_count;
	conn->srq = sent->srq;
	shca_message_copy_data(conn->private_data, &conn->private_data_len, sent->private_data,
			       sent->private_data_len, SHCA_MESSAGE_REP_DATA);
	event->resp.ece = from->ece;
}

static int send_rep(struct shca_fabric *fabric, struct shca_cm_id *id,
		    const struct rdma_ucm_accept *cmd)
{
	struct shca_cm_id *peer = peer_of(fabric, id);
	uint64_t at = shca_message_arrives(fabric, id, 0);

	if (id->link != SHCA_CM_LINK_REQ_RCVD ||
	    cmd->conn_param.private_data_len > SHCA_MESSAGE_REP_DATA)
		return -EINVAL;
	id->param = cmd->conn_param;
	id->ece = cmd->ece;
	id->responder_resources = id->param.responder_resources;
	id->initiator_depth = id->param.initiator_depth;
	await_answer(fabric, id, SHCA_CM_LINK_REP_SENT);
	if (!peer || peer->link != SHCA_CM_LINK_REQ_SENT)
		return 0;
	if (shca_connection_is_stale(fabric, id, at))
		part(fabric, id); /* the asking end asks again */
	else
		at_rep(fabric, peer, at, id);
	return 0;
}

static void at_rtu(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	if (id->link != SHCA_CM_LINK_REP_SENT)
		return;
	set_link(id, SHCA_CM_LINK_ESTABLISHED);
	shca_events_add_at(fabric, id, at, SHCA_CM_ESTABLISHED, 0);
}

static int send_rtu(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	if (id->link != SHCA_CM_LINK_REP_RCVD)
		return -EINVAL;
	set_link(id, SHCA_CM_LINK_ESTABLISHED);
	if (peer)
		at_rtu(fabric, peer, shca_message_arrives(fabric, id, 0));
	return 0;
}

int shca_connection_notify(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t event)
{
	if (id->link == SHCA_CM_LINK_NONE || event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	if (id->link == SHCA_CM_LINK_ESTABLISHED)
		return -EISCONN;
	if (id->link != SHCA_CM_LINK_REP_SENT)
		return -EINVAL;
	at_rtu(fabric, id, 0);
	return 0;
}

/* ---- datagrams ---- */

/* The asking end gets the number of the QP. */
static void at_sidr_rep(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at,
			const struct shca_cm_id *from)
{
	struct shca_cm_event *event;
	struct rdma_ucm_ud_param *ud;
	int rc;

	set_link(id, SHCA_CM_LINK_IDLE);
	id->remote_qpn = from->param.qp_num;
	rc = shca_message_set_qkey(id, from->qkey);
	if (rc) {
		shca_events_add_at(fabric, id, at, SHCA_CM_ADDR_ERROR, rc);
		return;
	}
	event = shca_events_add_at(fabric, id, at, SHCA_CM_ESTABLISHED, 0);
	if (!event)
		return;
	ud = &event->resp.param.ud;
	shca_message_fill_ud(fabric, id, ud);
	shca_message_copy_data(ud->private_data, &ud->private_data_len, from->param.private_data,
			       from->param.private_data_len, SHCA_MESSAGE_SIDR_REP_DATA);
}

static int send_sidr_rep(struct shca_fabric *fabric, struct shca_cm_id *id,
			 const struct rdma_ucm_accept *cmd)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	if (id->link != SHCA_CM_LINK_SIDR_RCVD ||
	    cmd->conn_param.private_data_len > SHCA_MESSAGE_SIDR_REP_DATA ||
	    shca_message_set_qkey(id, cmd->conn_param.qkey))
		return -EINVAL;
	id->param = cmd->conn_param;
	set_link(id, SHCA_CM_LINK_IDLE);
	part(fabric, id);
	if (peer && peer->link == SHCA_CM_LINK_SIDR_SENT)
		at_sidr_rep(fabric, peer, shca_message_arrives(fabric, id, 0), id);
	return 0;
}

static void refuse_datagrams(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	set_link(id, SHCA_CM_LINK_IDLE);
	part(fabric, id);
	if (!peer || peer->link != SHCA_CM_LINK_SIDR_SENT)
		return;
	set_link(peer, SHCA_CM_LINK_IDLE);
	shca_events_add_at(fabric, peer, shca_message_arrives(fabric, id, 0), SHCA_CM_UNREACHABLE,
			   SHCA_SIDR_REJECT);
}

int shca_connection_accept(struct shca_fabric *fabric, struct shca_cm_id *id,
			   const struct rdma_ucm_accept *cmd)
{
	if (id->state != SHCA_CM_CONNECT)
		return -EINVAL;
	if (shca_message_is_datagram(id))
		return cmd->conn_param.valid ? send_sidr_rep(fabric, id, cmd) : -EINVAL;
	return cmd->conn_param.valid ? send_rep(fabric, id, cmd) : send_rtu(fabric, id);
}

/* ---- REJ ---- */

static void at_rej(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at, uint8_t reason,
		   const uint8_t *data, uint8_t len)
{
	struct shca_cm_event *event;

	if (id->link == SHCA_CM_LINK_REP_RCVD || id->link == SHCA_CM_LINK_DREQ_SENT ||
	    reason == SHCA_REJ_STALE)
		enter_timewait(fabric, id, at);
	else
		set_link(id, SHCA_CM_LINK_IDLE);
	event = shca_events_add_at(fabric, id, at, SHCA_CM_REJECTED, reason);
	if (event)
		shca_message_copy_data(event->resp.param.conn.private_data,
				       &event->resp.param.conn.private_data_len, data, len,
				       SHCA_MESSAGE_REJ_DATA);
}

/* Sends a rejection to the peer, and ends the own half of the connection. */
static void send_rej(struct shca_fabric *fabric, struct shca_cm_id *id, uint8_t reason,
		     const uint8_t *data, uint8_t len)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	part(fabric, id);
	if (id->link == SHCA_CM_LINK_REP_SENT)
		enter_timewait(fabric, id, 0);
	else
		set_link(id, SHCA_CM_LINK_IDLE);
	if (peer)
		at_rej(fabric, peer, shca_message_arrives(fabric, id, 0), reason, data, len);
}

int shca_connection_reject(struct shca_fabric *fabric, struct shca_cm_id *id, uint8_t reason,
			   const uint8_t *data, uint8_t len)
{
	if (!reason)
		reason = SHCA_REJ_CONSUMER;
	if (reason != SHCA_REJ_CONSUMER && reason != SHCA_REJ_VENDOR_OPTION)
		return -EINVAL;
	switch (id->link) {
	case SHCA_CM_LINK_SIDR_RCVD:
		if (len > SHCA_MESSAGE_SIDR_REP_DATA)
			return -EINVAL;
		refuse_datagrams(fabric, id);
		return 0;
	case SHCA_CM_LINK_REQ_SENT:
	case SHCA_CM_LINK_REQ_RCVD:
	case SHCA_CM_LINK_REP_SENT:
	case SHCA_CM_LINK_REP_RCVD:
		if (len > SHCA_MESSAGE_REJ_DATA)
			return -EINVAL;
		send_rej(fabric, id, reason, data, len);
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- DREQ and DREP ---- */

static void at_drep(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	if (id->link != SHCA_CM_LINK_DREQ_SENT && id->link != SHCA_CM_LINK_DREQ_RCVD)
		return;
	enter_timewait(fabric, id, at);
	report_disconnected(fabric, id, at, 0);
}

/* Returns true if the peer's kernel answers a DREQ at once, because there is no connection any
 * more. */
static bool at_dreq(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	switch (id->link) {
	case SHCA_CM_LINK_REP_SENT:
	case SHCA_CM_LINK_ESTABLISHED:
	case SHCA_CM_LINK_DREQ_SENT:
		set_link(id, SHCA_CM_LINK_DREQ_RCVD);
		report_disconnected(fabric, id, at, 0);
		return false;
	case SHCA_CM_LINK_TIMEWAIT:
	case SHCA_CM_LINK_IDLE:
		return true;
	default:
		return false;
	}
}

/* Sends a DREQ at time `at`; 0: now. */
static void send_dreq(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t at)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	await_answer(fabric, id, SHCA_CM_LINK_DREQ_SENT);
	at = shca_message_arrives(fabric, id, at);
	if (!peer || at_dreq(fabric, peer, at))
		at_drep(fabric, id, shca_message_arrives(fabric, id, at));
}

static void send_drep(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_id *peer = peer_of(fabric, id);

	enter_timewait(fabric, id, 0);
	if (peer)
		at_drep(fabric, peer, shca_message_arrives(fabric, id, 0));
}

int shca_connection_disconnect(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	if (id->link == SHCA_CM_LINK_NONE || shca_message_is_datagram(id))
		return -EINVAL;
	if (id->link == SHCA_CM_LINK_ESTABLISHED)
		send_dreq(fabric, id, 0);
	else if (id->link == SHCA_CM_LINK_DREQ_RCVD)
		send_drep(fabric, id);
	return 0;
}

/* ---- the end of an identifier, and deadlines ---- */

void shca_connection_destroyed(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	switch (id->link) {
	case SHCA_CM_LINK_SIDR_RCVD:
		refuse_datagrams(fabric, id);
		break;
	case SHCA_CM_LINK_REQ_SENT:
		send_rej(fabric, id, SHCA_REJ_TIMEOUT, NULL, 0);
		break;
	case SHCA_CM_LINK_REQ_RCVD:
	case SHCA_CM_LINK_REP_SENT:
	case SHCA_CM_LINK_REP_RCVD:
		send_rej(fabric, id, SHCA_REJ_CONSUMER, NULL, 0);
		break;
	case SHCA_CM_LINK_ESTABLISHED:
		/* The kernel leaves a target QP, which others may still use, connected. */
		if (id->qp_type != IBV_QPT_XRC_RECV)
			send_dreq(fabric, id, 0);
		break;
	case SHCA_CM_LINK_DREQ_RCVD:
		send_drep(fabric, id);
		break;
	default:
		break;
	}
	part(fabric, id);
	id->deadline = 0;
}

static void rep_due(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	if (id->retries) {
		id->retries--;
		shca_deadline_set(fabric, id, 0,
				  id->peer ? SHCA_DEADLINE_MRA : SHCA_DEADLINE_RESEND);
		return;
	}
	set_link(id, SHCA_CM_LINK_IDLE);
	part(fabric, id);
	shca_events_add(fabric, id, SHCA_CM_UNREACHABLE, -ETIMEDOUT);
}

static void dreq_due(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	const struct shca_cm_id *peer = peer_of(fabric, id);

	/* Sent again; a peer that is gone answers. */
	if (!peer) {
		uint64_t there = shca_message_arrives(fabric, id, 0);

		at_drep(fabric, id, shca_message_arrives(fabric, id, there));
		return;
	}
	if (id->retries) {
		id->retries--;
		shca_deadline_set(fabric, id, 0, SHCA_DEADLINE_RESEND);
		return;
	}
	enter_timewait(fabric, id, 0);
	report_disconnected(fabric, id, 0, -ETIMEDOUT);
}

void shca_connection_due(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	switch (id->link) {
	case SHCA_CM_LINK_REP_SENT:
		rep_due(fabric, id);
		break;
	case SHCA_CM_LINK_DREQ_SENT:
		dreq_due(fabric, id);
		break;
	case SHCA_CM_LINK_TIMEWAIT:
		set_link(id, SHCA_CM_LINK_IDLE);
		part(fabric, id);
		shca_events_add(fabric, id, SHCA_CM_TIMEWAIT_EXIT, 0);
		break;
	default:
		break;
	}
}
