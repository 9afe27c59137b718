/* SPDX-License-Identifier: BSD-3-Clause */
#include "hca.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void complete(struct model_done **cq, struct model_done done)
{
	struct model_done *entry = malloc(sizeof(*entry));

	*entry = done;
	DL_APPEND(*cq, entry);
}

static struct model_done take(struct model_done **cq)
{
	struct model_done *entry = *cq, done = *entry;

	DL_DELETE(*cq, entry);
	free(entry);
	return done;
}

/* ---- the control lane ---- */

void hca_control(struct model *model, int from, int to)
{
	struct model_ep *here = &model->ep[to], *there = &model->ep[from];
	struct model_item *it = there->control[to];
	const struct tq_msg_hdr *hdr = (const void *)it->msg;
	bool data = tq_msg_has_data(hdr->type), kept;
	struct tq_bounce *bounce = NULL;

	DL_DELETE(there->control[to], it);
	if (it->eager)
		there->eager_out--;
	if (model_astray(model, from, to) && tq_msg_check(it->msg, it->len)) {
		model_item_free(it);
		return;
	}
	if (data && !(model->conf.rings[from] & 1u << to)) {
		bounce = malloc(sizeof(*bounce));
		*bounce = (struct tq_bounce){.ep = to, .len = it->len, .msg = it->msg};
		DL_APPEND(here->bounces, bounce);
	}
	kept = tq_core_on_control(&here->core, &here->peers[from], it->msg, it->len, bounce);
	t_true(bounce || !kept, "%s: its buffer is kept", tq_msg_name(hdr->type));
	/* A message that is not kept goes at once. A kept one may have been put already. */
	if (bounce && !kept)
		model_ops.bounce_put((struct tq_net *)here, bounce);
	if (bounce)
		it->msg = NULL;
	model_item_free(it);
}

/* ---- direct messages and RDMA ---- */

static const struct model_reg *remote_reg(const struct model *model, const struct model_item *it)
{
	const struct model_reg *reg;

	for (reg = model->ep[it->to].regs; reg && reg->reg.rkey != it->rkey;)
		reg = reg->next;
	return reg;
}

/* Returns true if the memory or queue that the item names is there, or has to be. If not, the item
 * ends with an error. */
static bool reaches(const struct model *model, int from, const struct model_item *it)
{
	const struct tq_srq *srq;
	const struct model_reg *reg;

	if (!model_astray(model, from, it->to))
		return true;
	if (it->kind == MODEL_DIRECT) {
		srq = model_srq((struct model *)model, it->srqn);
		return srq && srq->state == MODEL_SRQ_USED && srq->ep == it->to &&
		       it->bytes <= model->ep[it->to].limits.max_direct;
	}
	reg = remote_reg(model, it);
	return reg && (reg->write || it->kind == MODEL_READ) && it->addr >= (uintptr_t)reg->addr &&
	       it->addr - (uintptr_t)reg->addr <= reg->len - it->bytes && it->bytes <= reg->len;
}

bool hca_can_move(struct model *model, int ep, int qp)
{
	struct model_item *it = model->ep[ep].sq[qp];
	struct tq_srq *srq;

	if (!it)
		return false;
	if (it->kind != MODEL_DIRECT || !reaches(model, ep, it))
		return true;
	srq = model_srq(model, it->srqn);
	if (srq->recvs)
		return true;
	t_true(model_astray(model, ep, it->to) || qp % (MODEL_LANES + 1) != MODEL_BULK,
	       "a direct message blocks the bulk lane");
	return false;
}

/* Copies the item's data to `at`: inlined data as they were at the post, others as they are now. */
static void gather(struct model_ep *ep, const struct model_item *it, uint8_t *at)
{
	if (it->inlined) {
		memcpy(at, it->inlined, it->bytes);
		return;
	}
	for (int i = 0; i < it->nsg; at += it->sg[i++].len) {
		model_check_reg(ep, &it->sg[i], false, "a direct message on its way");
		if (it->sg[i].len)
			memcpy(at, it->sg[i].addr, it->sg[i].len);
	}
}

/* Copies data to a receive, whose last piece, the sink, takes the bytes beyond the buffer's end. */
static void scatter(struct model_ep *ep, const struct model_recv *recv, const uint8_t *from,
		    uint64_t len)
{
	for (int i = 0; i < recv->nsg && len; i++) {
		uint64_t n = len < recv->sg[i].len ? len : recv->sg[i].len;

		model_check_reg(ep, &recv->sg[i], true, "a receive in an SRQ");
		if (n)
			memcpy(recv->sg[i].addr, from, n);
		from += n;
		len -= n;
	}
}

/* Has the SRQ's first receive take a message. */
static void deliver(struct model *model, int from, int qp, struct tq_srq *srq, const uint8_t *data,
		    uint64_t len)
{
	struct model_ep *there = &model->ep[srq->ep];
	struct model_recv *recv = srq->recvs;
	uint64_t fits = 0;

	for (int i = 0; i < recv->nsg; i++)
		fits += recv->sg[i].len;
	t_true(len <= fits || len <= there->limits.max_direct,
	       "a message of %llu bytes breaks the connection: its receive has %llu and no sink",
	       (unsigned long long)len, (unsigned long long)fits);
	DL_DELETE(srq->recvs, recv);
	scatter(there, recv, data, len);
	srq->nrecvs--;
	srq->unpolled++;
	complete(&there->rcq[from][qp], (struct model_done){
						.kind = MODEL_DIRECT,
						.token = recv->token,
						.len = len,
						.srq = srq,
					});
	free(recv);
}

static void direct_arrives(struct model *model, struct model_ep *ep, struct model_item *it, int qp)
{
	struct tq_srq *srq = model_srq(model, it->srqn);
	uint8_t *data = malloc(it->bytes + 1);

	t_true(srq->state == MODEL_SRQ_USED && srq->recvs,
	       "a direct message to an SRQ that is gone");
	gather(ep, it, data);
	srq->flying--;
	deliver(model, ep->id, qp, srq, data, it->bytes);
	free(data);
}

void hca_stray(struct model *model, int from, struct tq_srq *srq, uint64_t len)
{
	uint8_t *data = calloc(1, len + 1);

	deliver(model, from, 0, srq, data, len);
	free(data);
}

static void rdma_runs(struct model *model, struct model_ep *ep, struct model_item *it)
{
	const char *what = it->kind == MODEL_READ ? "RDMA read" : "RDMA write";
	const struct model_reg *reg = remote_reg(model, it);
	uint8_t *remote = (uint8_t *)(uintptr_t)it->addr;

	t_true(reg, "%s: its rkey isn't valid (any more)", what);
	t_true(it->kind == MODEL_READ || reg->write, "%s: to memory that is only read", what);
	t_true(remote >= reg->addr && remote + it->bytes <= reg->addr + reg->len,
	       "%s: outside of the remote registration", what);
	for (int i = 0; i < it->nsg; remote += it->sg[i++].len) {
		model_check_reg(ep, &it->sg[i], it->kind == MODEL_READ, what);
		if (it->kind == MODEL_READ)
			memcpy(it->sg[i].addr, remote, it->sg[i].len);
		else
			memcpy(remote, it->sg[i].addr, it->sg[i].len);
	}
}

static struct tq_lane *lane_of(struct model_ep *ep, int qp)
{
	int lane = qp % (MODEL_LANES + 1);

	return lane == MODEL_BULK ? NULL : &ep->lanes[qp / (MODEL_LANES + 1)][lane];
}

void hca_move(struct model *model, int id, int qp)
{
	struct model_ep *ep = &model->ep[id];
	struct model_item *it = ep->sq[qp];

	if (!reaches(model, id, it)) {
		hca_break(model, id, it->to);
		return;
	}
	DL_DELETE(ep->sq[qp], it);
	if (it->kind == MODEL_DIRECT)
		direct_arrives(model, ep, it, qp);
	else
		rdma_runs(model, ep, it);
	complete(&ep->scq[qp], (struct model_done){
				       .kind = it->kind,
				       .token = it->token,
				       .lane = lane_of(ep, qp),
				       .lazy = it->lazy,
			       });
	model_item_free(it);
}

/* ---- polls of software ---- */

bool hca_reported(const struct model *model, int ep, int qp)
{
	const struct model_done *done = model->ep[ep].scq[qp];

	while (done && done->lazy && !model->report_all)
		done = done->next;
	return done;
}

void hca_sent(struct model *model, int id, int qp)
{
	struct model_ep *ep = &model->ep[id];
	struct model_done d = take(&ep->scq[qp]);

	if (d.lane)
		d.lane->outstanding--;
	if (d.kind == MODEL_DIRECT)
		tq_core_on_sent(&ep->core, d.token, d.status);
	else
		tq_core_on_rdma_done(&ep->core, d.token, d.status);
}

void hca_delivered(struct model *model, int id, int from, int qp)
{
	struct model_ep *ep = &model->ep[id];
	struct model_done d = take(&ep->rcq[from][qp]);
	bool failed = ep->peers[from].failed;

	d.srq->unpolled--;
	if (d.srq->state == MODEL_SRQ_WITHDRAWN || d.srq->state == MODEL_SRQ_DEAD)
		return;
	tq_core_on_delivered(&ep->core, d.token, d.len,
			     d.status ? "a receive for it failed" : NULL);
	t_true(!d.status || failed || ep->peers[from].failing,
	       "%d goes on with %d, of which a receive failed", id, from);
}

/* Destroys withdrawn SRQs. A sender that was lost may still have filled the first receive of
 * one. */
void hca_srqs_gone(struct model *model, int id)
{
	struct model_ep *ep = &model->ep[id];
	static const uint8_t late[64] = "this came after its connection had failed";

	for (uint32_t i = 0; i < model->nsrqs; i++) {
		if (model->srqs[i]->ep == id && model->srqs[i]->state == MODEL_SRQ_WITHDRAWN &&
		    model->srqs[i]->recvs && sim_chance(model->rng, 128))
			scatter(ep, model->srqs[i]->recvs, late, sizeof(late));
	}
	model_srqs_gone(ep);
	tq_core_on_srqs_gone(&ep->core);
}

void hca_lane_ready(struct model *model, int id, int to)
{
	struct model_ep *ep = &model->ep[id];

	ep->making[to]->confirmed |= 1u << to;
	ep->making[to] = NULL;
	tq_core_on_lane_ready(&ep->core, &ep->peers[to]);
}

/* ---- failures ---- */

/* Makes the last message on some lanes incomplete: its receive ends with an error. */
static void break_off(struct model *model, int from, int to)
{
	for (int qp = 0; qp < MODEL_QPS; qp++) {
		struct model_done *first = model->ep[to].rcq[from][qp];

		if (first && sim_chance(model->rng, 224)) {
			first->prev->status = -EIO;
			first->prev->len = 0;
		}
	}
}

static void break_way(struct model *model, int from, int to)
{
	struct model_ep *ep = &model->ep[from];
	struct model_item *it, *tmp;

	model->down[from][to] = true;
	break_off(model, from, to);
	DL_FOREACH_SAFE(ep->control[to], it, tmp) {
		DL_DELETE(ep->control[to], it);
		if (it->eager)
			ep->eager_out--;
		model_item_free(it);
	}
	for (int qp = 0; qp < MODEL_QPS; qp++) {
		DL_FOREACH_SAFE(ep->sq[qp], it, tmp) {
			if (it->to != to)
				continue;
			DL_DELETE(ep->sq[qp], it);
			if (it->kind == MODEL_DIRECT && model_srq(model, it->srqn))
				model_srq(model, it->srqn)->flying--;
			complete(&ep->scq[qp], (struct model_done){
						       .kind = it->kind,
						       .token = it->token,
						       .status = -EIO,
						       .lane = lane_of(ep, qp),
					       });
			model_item_free(it);
		}
	}
	ep->making[to] = NULL;
}

void hca_break(struct model *model, int a, int b)
{
	break_way(model, a, b);
	break_way(model, b, a);
}
