/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TGT QPs for other processes' lanes. A request that has come before gets the same answer: so each
 * is answered as often as it is asked, and acted on once. No process says when its lane ends, so
 * TGT QPs stay until their requester is no peer any more. But a process has one control lane and
 * one bulk lane to a node, so a request for another one says that the one before is lost. So a peer
 * has a bounded number of TGT QPs here.
 */
#include "net/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/channel/control.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/look_up.h"
#include "net/peers/oob.h"

static int to_rtr(struct tq_net *net, struct ibv_qp *qp, const struct tq_link *link,
		  const struct tq_oob_req *req, uint8_t rd_atomic)
{
	const struct tq_node *node = link->node;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = net->dev.pkey_index,
		.port_num = net->dev.port_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   (net->limits.has_atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};
	int error = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (error)
		return -error;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = req->mtu,
		.dest_qp_num = tq_get32(req->ini_qpn),
		.rq_psn = tq_get32(req->psn),
		.max_dest_rd_atomic = rd_atomic,
		.min_rnr_timer = (uint8_t)net->params->rnr_timer,
	};
	tq_address_path(net, &node->key.gid, node->lid, &attr.ah_attr);
	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
}

static uint8_t dest_rd_atomic(const struct tq_net *net, const struct tq_oob_req *req)
{
	int n = req->rd_atomic;

	if (n > net->dev.attr.max_qp_rd_atom)
		n = net->dev.attr.max_qp_rd_atom;
	return (uint8_t)(n < TQ_RD_ATOMIC_MAX ? n : TQ_RD_ATOMIC_MAX);
}

static int make_tgt(struct tq_net *net, const struct tq_link *link, const struct tq_oob_req *req,
		    uint8_t rd_atomic, struct ibv_qp **made)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = net->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(net->dev.verbs, &attr);
	int error;

	if (!qp)
		return -errno;
	error = to_rtr(net, qp, link, req, rd_atomic);
	if (error) {
		ibv_destroy_qp(qp);
		return error;
	}
	*made = qp;
	return 0;
}

static int open_tgt(struct tq_net *net, uint32_t qpn, struct ibv_qp **opened)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = net->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	*opened = ibv_open_qp(net->dev.verbs, &attr);
	return *opened ? 0 : -errno;
}

static int accept_control(struct tq_net *net, struct tq_link *link, bool ring,
			  struct tq_oob_rep *rep)
{
	struct tq_control_terms terms;
	int error = tq_control_accept(net, link, ring, &terms);

	if (error)
		return error;
	rep->conn = tq_put32(link->number_here);
	for (int c = 0; c < TQ_CLASSES; c++) {
		rep->srqn[c] = tq_put32(terms.srqn[c]);
		rep->size[c] = tq_put32(terms.size[c]);
		rep->credits[c] = tq_put32(terms.credits[c]);
	}
	rep->ring = tq_put32(terms.ring);
	rep->ring_size = tq_put32(terms.ring_size);
	return 0;
}

static void refuse(struct tq_net *net, struct tq_link *link, struct tq_oob_rep *rep,
		   enum tq_oob_status status, int error)
{
	rep->hdr.status = (uint8_t)status;
	rep->error = tq_put32((uint32_t)-error);
	tq_oob_send(net, link, rep, sizeof(*rep));
}

static void drop(struct tq_net *net, struct tq_target *target)
{
	HASH_DEL(net->connections->targets, target);
	ibv_destroy_qp(target->qp);
	target->link->contact->ntargets[target->kind]--;
	TQ_LEVEL(net->stats, targets, -1);
	free(target);
}

/* Records the txid of a request. Returns false if a newer request of its kind has come: a process
 * asks for one lane of a kind after the other, so the request is a late copy. */
static bool take_txid(struct tq_link *link, enum tq_lane_kind kind, uint64_t txid)
{
	struct tq_contact *contact = link->contact;

	if (contact->has_asked[kind] && (int64_t)(txid - contact->newest[kind]) < 0)
		return false;
	contact->has_asked[kind] = true;
	contact->newest[kind] = txid;
	return true;
}

/* Makes room for one more TGT QP. Hold lanes of processes that have died are replaced without
 * notice to the others, so a process may have twice as many as hold_lanes. Returns 0 or -ENOSPC. */
static int make_room(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind)
{
	struct tq_target *target, *tmp;

	if (kind == TQ_LANE_HOLD) {
		if (link->contact->ntargets[kind] < 2 * (uint32_t)net->params->hold_lanes)
			return 0;
		TQ_COUNT(net->stats, excesses);
		return -ENOSPC;
	}
	if (!link->contact->ntargets[kind])
		return 0;
	HASH_ITER(hh, net->connections->targets, target, tmp) {
		if (target->link == link && target->kind == kind)
			drop(net, target);
	}
	return 0;
}

/* Answers a request of a peer that has not come before. */
static void answer(struct tq_net *net, struct tq_link *link, const struct tq_oob_req *req)
{
	uint64_t txid = tq_get64(req->hdr.txid);
	uint32_t open = tq_get32(req->tgt_qpn);
	struct tq_oob_rep rep = {.hdr = tq_oob_hdr(net, link, TQ_OOB_REP, txid)};
	struct tq_target *target = calloc(1, sizeof(*target));
	int error = target ? 0 : -ENOMEM;

	if (!take_txid(link, req->kind, txid)) {
		TQ_COUNT(net->stats, dropped);
		free(target);
		return;
	}
	rep.rd_atomic = dest_rd_atomic(net, req);
	if (tq_link_has_failed(link))
		error = -ECONNRESET;
	if (!error)
		error = make_room(net, link, req->kind);
	if (!error && req->kind == TQ_LANE_CONTROL)
		error = accept_control(net, link, req->ring, &rep);
	if (!error)
		error = open ? open_tgt(net, open, &target->qp)
			     : make_tgt(net, link, req, rep.rd_atomic, &target->qp);
	if (error) {
		bool gone = open && !tq_is_limit(-error) && error != -ECONNRESET;

		refuse(net, link, &rep, gone ? TQ_OOB_GONE : TQ_OOB_ERROR, error);
		free(target);
		return;
	}
	rep.tgt_qpn = tq_put32(open ? open : target->qp->qp_num);
	target->key = (struct tq_target_key){link->nonce, txid};
	target->link = link;
	target->kind = req->kind;
	link->contact->ntargets[target->kind]++;
	target->rep = rep;
	HASH_ADD(hh, net->connections->targets, key, sizeof(target->key), target);
	TQ_LEVEL(net->stats, targets, 1);
	tq_oob_send(net, link, &rep, sizeof(rep));
}

/* Keeps a request until the link is a peer's. */
static void keep(struct tq_net *net, struct tq_link *link, const struct tq_oob_req *req)
{
	struct tq_contact *contact = link->contact;

	for (unsigned i = 0; i < contact->nkept; i++) {
		if (contact->kept[i].hdr.txid.v == req->hdr.txid.v)
			return;
	}
	if (req->kind == TQ_LANE_CONTROL)
		tq_link_connect(net, link, TQ_THERE);
	if (contact->nkept < TQ_KEPT_REQUESTS)
		contact->kept[contact->nkept++] = *req;
}

static bool is_sane(const struct tq_net *net, const struct tq_oob_req *req)
{
	return req->hdr.from.v == req->address.nonce.v && req->kind < TQ_LANE_KINDS &&
	       req->mtu >= IBV_MTU_256 && req->mtu <= (uint8_t)net->dev.mtu &&
	       tq_get32(req->ini_qpn) >= 2 && !(tq_get32(req->ini_qpn) >> 24) &&
	       !(tq_get32(req->psn) >> 24) && !(tq_get32(req->tgt_qpn) >> 24);
}

void tq_target_on_request(struct tq_net *net, const struct tq_oob_req *req)
{
	struct tq_target_key key = {tq_get64(req->hdr.from), tq_get64(req->hdr.txid)};
	struct tq_target *target;
	struct tq_link *link;

	if (!is_sane(net, req)) {
		TQ_COUNT(net->stats, dropped);
		return;
	}
	HASH_FIND(hh, net->connections->targets, &key, sizeof(key), target);
	if (target) {
		tq_oob_send(net, target->link, &target->rep, sizeof(target->rep));
		return;
	}
	/* A new bank may be needed, whose SRQs must not get the numbers of destroyed ones while
	 * completions of those may be left. The request will come again. */
	if (net->rcq.sweeping)
		return;
	link = tq_link_by_nonce(net, key.nonce);
	if (!link)
		link = tq_link_make_unnamed(net, &req->address);
	if (!link || memcmp(&link->contact->address, &req->address, sizeof(req->address))) {
		TQ_COUNT(net->stats, dropped);
		return;
	}
	if (!link->peer) {
		struct tq_oob_rep rep = {.hdr = tq_oob_hdr(net, link, TQ_OOB_REP, key.txid)};

		/* The process's messages can't be delivered before it is a peer, so they wait there
		 * meanwhile. */
		keep(net, link, req);
		tq_look_up_add_unnamed(net, &link->contact->address);
		refuse(net, link, &rep, TQ_OOB_WAIT, 0);
		return;
	}
	answer(net, link, req);
}

void tq_targets_answer_kept(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;

	for (unsigned i = 0; i < contact->nkept; i++)
		answer(net, link, &contact->kept[i]);
	contact->nkept = 0;
}

void tq_targets_drop(struct tq_net *net, const struct tq_link *link)
{
	struct tq_target *target, *tmp;

	HASH_ITER(hh, net->connections->targets, target, tmp) {
		if (!link || target->link == link)
			drop(net, target);
	}
}
