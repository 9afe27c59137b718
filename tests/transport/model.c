/* SPDX-License-Identifier: BSD-3-Clause */
#include "hca.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_ops.h"
#include "proto/core.h"

static int addressee(struct model_ep *ep, struct tq_link *link)
{
	t_true(link->ep == ep, "a peer of another endpoint");
	return link->to;
}

struct model_item *model_item_add(struct model_item **queue, enum model_kind kind, int to)
{
	struct model_item *it = calloc(1, sizeof(*it));

	it->kind = kind;
	it->to = to;
	DL_APPEND(*queue, it);
	return it;
}

void model_item_free(struct model_item *it)
{
	free(it->msg);
	free(it->inlined);
	free(it);
}

/* ---- the control lane ---- */

static bool makes_tuples(const struct model_ep *ep)
{
	return ep->params.protocol == TQ_PROTOCOL_TUPLEQ || ep->params.protocol == TQ_PROTOCOL_COPY;
}

static struct model_sent *sent_to(struct model_ep *ep, int to, uint32_t ctx, int32_t tag)
{
	struct model_sent *sent;

	LL_FOREACH(ep->sent, sent) {
		if (sent->to == to && sent->ctx == ctx && sent->tag == tag)
			return sent;
	}
	sent = malloc(sizeof(*sent));
	*sent = (struct model_sent){.to = to, .ctx = ctx, .tag = tag};
	LL_PREPEND(ep->sent, sent);
	return sent;
}

/* Checks that the endpoint may request a tuple queue now. */
static void check_asking(struct model_ep *ep, int to, const void *msg)
{
	const struct tq_msg_eager *head = msg; /* an RTS begins like an EAGER */
	struct model_sent *sent;
	int32_t tag;

	/* Tags of contexts with match bits aren't those of tuples. */
	if (!tq_msg_has_envelope(head->hdr.type) || tq_get16(head->env.header_len))
		return;
	tag = (int32_t)tq_get64(head->env.tag);
	sent = sent_to(ep, to, tq_get32(head->env.ctx), tag);
	if (tq_get32(head->env.ask)) {
		t_true(makes_tuples(ep), "a tuple queue is asked for in protocol %d",
		       ep->params.protocol);
		t_true(tag > MODEL_ONCE_TAG, "a tag that is used once asks for a tuple queue");
		t_true(sent->n >= ep->params.promote_after,
		       "a tuple asks for its queue with message %lld", (long long)sent->n + 1);
		t_true(head->hdr.type == TQ_MSG_RTS || !ep->params.promote_after ||
			       !(ep->model->conf.rings[ep->id] & 1u << to),
		       "a message that goes through a ring asks for a tuple queue");
	}
	sent->n++;
}

static int op_control(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		      unsigned flags)
{
	struct model_ep *ep = model_enter(net);
	int to = addressee(ep, link);
	struct model_item *it;

	t_true(len <= TQ_MSG_MAX && !tq_msg_check(msg, len), "control message malformed");
	t_true(!(flags & ~TQ_CONTROL_SOLICITED), "control(): flags");
	check_asking(ep, to, msg);
	if (ep->model->down[ep->id][to])
		return -EIO;
	it = model_item_add(&ep->control[to], MODEL_CONTROL, to);
	it->msg = malloc(len);
	it->len = len;
	memcpy(it->msg, msg, len);
	return 0;
}

static void *op_eager_buf(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct model_ep *ep = model_enter(net);
	struct model_conf *conf = &ep->model->conf;
	int to = addressee(ep, link);

	if (!ep->data_sure &&
	    (ep->eager_out >= conf->eager_bufs || ep->model->ep[to].backpressured ||
	     model_fails(ep, conf->no_eager_buf)))
		return NULL;
	ep->data_sure = false;
	ep->eager = malloc(len);
	ep->eager_len = len;
	return ep->eager;
}

static int op_eager_send(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			 unsigned flags)
{
	struct model_ep *ep = (struct model_ep *)net;
	int to = addressee(ep, link);
	uint8_t type = *(uint8_t *)buf;
	/* A header may be in front of the data, but the whole message isn't longer. */
	size_t head =
		type == TQ_MSG_DATA ? sizeof(struct tq_msg_data) : sizeof(struct tq_msg_eager);
	struct model_item *it;

	t_true(ep->eager && buf == ep->eager && len == ep->eager_len,
	       "eager_send() of another buffer");
	t_true(tq_msg_has_data(type), "eager_send(): %s", tq_msg_name(type));
	t_true(!tq_msg_check(buf, len) && len <= head + ep->limits.control_data_max,
	       "%s malformed or too long", tq_msg_name(type));
	t_true(!(flags & ~TQ_CONTROL_SOLICITED), "eager_send(): flags");
	check_asking(ep, to, buf);
	ep->eager = NULL;
	if (ep->model->down[ep->id][to]) {
		free(buf);
		return -EIO;
	}
	it = model_item_add(&ep->control[to], MODEL_CONTROL, to);
	it->msg = buf;
	it->len = len;
	it->eager = true;
	ep->eager_out++;
	return 0;
}

static bool op_is_local(struct tq_net *net, struct tq_link *link)
{
	struct model_ep *ep = (struct model_ep *)net;

	return ep->model->conf.rings[ep->id] & 1u << addressee(ep, link);
}

static bool op_try_readable(struct tq_net *net, struct tq_link *link)
{
	struct model_ep *ep = (struct model_ep *)net;

	return ep->model->conf.readable[ep->id] & 1u << addressee(ep, link);
}

static int op_copy(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr, uint64_t len)
{
	struct model_ep *ep = model_enter(net);
	int from = addressee(ep, link);

	t_true(op_try_readable(net, link), "%d reads the memory of %d, which it may not", ep->id,
	       from);
	t_true(!ep->core.service, "the service thread copies users' data");
	t_true(len > 0, "a copy of nothing");
	if (ep->model->down[from][ep->id] || model_astray(ep->model, ep->id, from))
		return -EIO;
	/* A copy that fails may leave anything. */
	if (model_fails(ep, ep->model->conf.copy_fails)) {
		memset(to, 0xcc, len);
		return -EIO;
	}
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return 0;
}

static bool op_prepare_data(struct tq_net *net, struct tq_link *link)
{
	struct model_ep *ep = model_enter(net);

	(void)link;
	ep->data_sure = ep->eager_out < ep->model->conf.eager_bufs &&
			!model_fails(ep, ep->model->conf.no_data);
	return ep->data_sure;
}

static void op_bounce_put(struct tq_net *net, struct tq_bounce *bounce)
{
	struct model_ep *ep = model_enter(net);
	struct tq_bounce *kept;

	DL_FOREACH(ep->bounces, kept) {
		if (kept == bounce)
			break;
	}
	t_true(kept, "bounce_put() of a buffer that isn't kept");
	DL_DELETE(ep->bounces, kept);
	memset(kept->msg, 0xdd, kept->len);
	free(kept->msg);
	free(kept);
}

static void op_backpressure(struct tq_net *net, bool stop)
{
	struct model_ep *ep = model_enter(net);

	t_true(ep->backpressured != stop, "backpressure() twice");
	ep->backpressured = stop;
}

/* ---- lanes ---- */

static struct tq_lane *op_lane_get(struct tq_net *net, struct tq_link *link)
{
	struct model_ep *ep = model_enter(net);
	struct model_conf *conf = &ep->model->conf;
	int to = addressee(ep, link);
	struct tq_lane *lane;

	for (int i = 0; i < conf->hold_lanes; i++) {
		lane = &ep->lanes[conf->node[to]][i];
		if (!lane->taken && (lane->confirmed & 1u << to)) {
			lane->taken = true;
			return lane;
		}
	}
	for (int i = 0; i < conf->hold_lanes && !ep->making[to]; i++) {
		bool busy = false;

		lane = &ep->lanes[conf->node[to]][i];
		for (int p = 0; p < conf->neps; p++)
			busy |= ep->making[p] == lane;
		if (!busy && !(lane->confirmed & 1u << to) && !ep->model->down[ep->id][to])
			ep->making[to] = lane;
	}
	return NULL;
}

static void op_lane_put(struct tq_net *net, struct tq_lane *lane)
{
	struct model_ep *ep = model_enter(net);

	t_true(lane->ep == ep->id && lane->taken, "lane_put() of a lane that isn't taken");
	t_true(!lane->outstanding, "lane_put() with sends outstanding");
	lane->taken = false;
}

static void direct_lane(struct model_ep *ep, int to, struct tq_lane *lane, uint32_t srqn)
{
	t_true(lane && lane->ep == ep->id && lane->taken, "direct(): not a lane that is taken");
	t_true(lane->node == ep->model->conf.node[to], "direct(): a lane to another node");
	t_true(lane->confirmed & 1u << to, "direct(): a lane that the peer hasn't open");
	t_true(!lane->outstanding || lane->srqn == srqn, "two tuples on one hold lane");
}

static int op_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		     const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	struct model_ep *ep = model_enter(net);
	struct model_conf *conf = &ep->model->conf;
	int to = addressee(ep, link), bulk = !!(flags & TQ_DIRECT_BULK);
	struct tq_srq *srq = model_srq(ep->model, srqn);
	struct model_item *it;
	uint64_t len = 0, at = 0;

	t_true(!(flags & TQ_DIRECT_LAZY) || (!bulk && flags & (TQ_DIRECT_INLINE | TQ_DIRECT_COPY)),
	       "direct(): LAZY without INLINE or COPY, or on the bulk lane");
	t_true(!(flags & TQ_DIRECT_COPY) || nsg <= 1, "direct(): a copy of %d pieces", nsg);
	if (bulk)
		t_true(!lane, "direct(): a lane and BULK");
	else
		direct_lane(ep, to, lane, srqn);
	if (ep->model->down[ep->id][to])
		return -EIO;
	t_true((srq && srq->state == MODEL_SRQ_USED && srq->ep == to) ||
		       model_astray(ep->model, ep->id, to),
	       "direct() to SRQ %u, which isn't there", srqn);
	t_true(nsg >= 0 && nsg <= (int)ep->limits.max_sge, "direct(): %d pieces", nsg);
	for (int i = 0; i < nsg; i++) {
		len += sg[i].len;
		if (!(flags & TQ_DIRECT_INLINE))
			model_check_reg(ep, &sg[i], false, "direct()");
	}
	t_true(len <= ep->limits.max_send && (len <= ep->model->ep[to].limits.max_direct ||
					      conf->exact || model_astray(ep->model, ep->id, to)),
	       "direct(): %llu bytes are too long", (unsigned long long)len);
	if (!bulk && (lane->outstanding >= conf->lane_depth || model_fails(ep, conf->lane_full)))
		return -EAGAIN;
	it = model_item_add(&ep->sq[model_qp(conf->node[to], bulk ? MODEL_BULK : lane->idx)],
			    MODEL_DIRECT, to);
	it->token = token;
	it->srqn = srqn;
	it->bytes = len;
	it->nsg = nsg;
	for (int i = 0; i < nsg; i++)
		it->sg[i] = sg[i];
	if (flags & TQ_DIRECT_INLINE) {
		t_true(len <= ep->limits.max_inline, "direct(): too long to be inlined");
		it->inlined = malloc(len + 1);
		for (int i = 0; i < nsg; at += sg[i++].len) {
			if (sg[i].len)
				memcpy(it->inlined + at, sg[i].addr, sg[i].len);
		}
	}
	if (srq)
		srq->flying++;
	if (bulk)
		return 0;
	lane->outstanding++;
	lane->srqn = srqn;
	/* A full queue is drained in any case. */
	it->lazy = flags & TQ_DIRECT_LAZY && lane->outstanding < conf->lane_depth &&
		   (conf->lazy == 256 || sim_chance(ep->model->rng, conf->lazy));
	return 0;
}

static void op_report(struct tq_net *net, struct tq_lane *lane)
{
	struct model_ep *ep = model_enter(net);
	int qp = model_qp(lane->node, lane->idx);
	struct model_item *it;
	struct model_done *done;

	t_true(lane->ep == ep->id && lane->taken, "report() of a lane that isn't taken");
	for (it = ep->sq[qp]; it; it = it->next)
		it->lazy = false;
	for (done = ep->scq[qp]; done; done = done->next)
		done->lazy = false;
}

static void op_remind(struct tq_net *net)
{
	struct model_ep *ep = model_enter(net);

	t_true(!ep->reminds, "remind() before the last was answered");
	ep->reminds = true;
}

static int rdma(struct model_ep *ep, enum model_kind kind, struct tq_link *link,
		const struct tq_sg *sg, int nsg, uint64_t addr, uint32_t rkey, void *token)
{
	const struct tq_net_limits *limits = &ep->limits;
	int to = addressee(ep, link);
	struct model_item *it;

	t_true(nsg > 0 && nsg <= (int)(kind == MODEL_READ ? limits->max_sge_rd : limits->max_sge),
	       "RDMA: %d pieces", nsg);
	for (int i = 0; i < nsg; i++)
		model_check_reg(ep, &sg[i], kind == MODEL_READ, "RDMA");
	if (ep->model->down[ep->id][to])
		return -EIO;
	if (model_fails(ep, ep->model->conf.no_rdma))
		return -ENOMEM;
	it = model_item_add(&ep->sq[model_qp(ep->model->conf.node[to], MODEL_BULK)], kind, to);
	it->token = token;
	it->nsg = nsg;
	for (int i = 0; i < nsg; i++) {
		it->sg[i] = sg[i];
		it->bytes += sg[i].len;
	}
	it->addr = addr;
	it->rkey = rkey;
	return 0;
}

static int op_read(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		   uint64_t addr, uint32_t rkey, void *token)
{
	return rdma(model_enter(net), MODEL_READ, link, sg, nsg, addr, rkey, token);
}

static int op_write(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		    uint64_t addr, uint32_t rkey, void *token)
{
	return rdma(model_enter(net), MODEL_WRITE, link, sg, nsg, addr, rkey, token);
}

/* ---- connections, and the clock ---- */

static void op_peer_fail(struct tq_net *net, struct tq_link *link, const char *why)
{
	struct model_ep *ep = model_enter(net);
	int to = addressee(ep, link);

	t_true(ep->model->down[ep->id][to] || ep->model->conf.gives_up ||
		       model_astray(ep->model, ep->id, to),
	       "%d gives %d up: %s", ep->id, to, why);
	SIM_TRACE("      %d gives %d up: %s", ep->id, to, why);
	hca_break(ep->model, ep->id, to);
}

const struct tq_net_ops model_ops = {
	.control = op_control,
	.eager_buf = op_eager_buf,
	.eager_send = op_eager_send,
	.prepare_data = op_prepare_data,
	.is_local = op_is_local,
	.try_readable = op_try_readable,
	.copy = op_copy,
	.copy_get = model_op_copy_get,
	.reserve_get = model_op_reserve_get,
	.copy_put = model_op_copy_put,
	.lane_get = op_lane_get,
	.lane_put = op_lane_put,
	.direct = op_direct,
	.report = op_report,
	.remind = op_remind,
	.peer_fail = op_peer_fail,
	.read = op_read,
	.write = op_write,
	.srq_get = model_op_srq_get,
	.srq_post = model_op_srq_post,
	.srq_put = model_op_srq_put,
	.reg = model_op_reg,
	.unreg = model_op_unreg,
	.bounce_put = op_bounce_put,
	.backpressure = op_backpressure,
};

/* ---- life ---- */

static void start_ep(struct model *model, int id)
{
	struct model_ep *ep = &model->ep[id];

	ep->model = model;
	ep->id = id;
	for (int node = 0; node < model->conf.neps; node++) {
		for (int i = 0; i < MODEL_LANES; i++)
			ep->lanes[node][i] = (struct tq_lane){
				.ep = id,
				.node = node,
				.idx = i,
				.confirmed = model->conf.lanes_ready ? ~0u : 0,
			};
	}
	tq_core_init(&ep->core, &model_ops, (struct tq_net *)ep, &ep->limits, &ep->params,
		     &ep->stats);
	for (int p = 0; p < model->conf.neps; p++) {
		ep->links[p].ep = ep;
		ep->links[p].to = p;
		t_true(!tq_core_peer_init(&ep->core, &ep->peers[p], &ep->links[p],
					  ep->lanes[model->conf.node[p]]),
		       "no memory");
	}
}

void model_start(struct model *model, struct sim_rng *rng)
{
	model->rng = rng;
	model->next_key = MODEL_FIRST_LKEY;
	for (int i = 0; i < model->conf.neps; i++)
		start_ep(model, i);
}

static void stop_ep(struct model_ep *ep)
{
	struct model_item *it, *tmp;
	struct model_sent *sent, *snext;

	LL_FOREACH_SAFE(ep->sent, sent, snext) {
		free(sent);
	}
	t_true(!ep->regs, "%d: a registration is left", ep->id);
	t_true(!ep->bounces, "%d: a control buffer is left", ep->id);
	t_true(!ep->copied, "%d: a sender's copy is left", ep->id);
	t_true(!ep->nsrqs, "%d: an SRQ is left", ep->id);
	for (int to = 0; to < MODEL_EPS; to++) {
		DL_FOREACH_SAFE(ep->control[to], it, tmp) {
			free(it->msg);
			free(it);
		}
	}
	for (int qp = 0; qp < MODEL_QPS; qp++)
		t_true(!ep->sq[qp] && !ep->scq[qp], "%d: work is left in a send queue", ep->id);
	for (int node = 0; node < MODEL_EPS; node++) {
		for (int i = 0; i < MODEL_LANES; i++)
			t_true(!ep->lanes[node][i].taken, "%d: a lane is left", ep->id);
	}
}

void model_stop(struct model *model)
{
	for (int i = 0; i < model->conf.neps; i++)
		stop_ep(&model->ep[i]);
	for (uint32_t i = 0; i < model->nsrqs; i++)
		free(model->srqs[i]);
	free(model->srqs);
}
