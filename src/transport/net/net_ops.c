/* SPDX-License-Identifier: BSD-3-Clause */
/* The network as the protocol sees it, and its life. */
#include "net/connections.h"

/* Eager messages may be switched off, pieces not. */
#define PIECE_MIN 1024u

/* Rounds of work between two looks at the adapter's events, which are a system call. */
#define LOOK_AT_DEVICE 256

/* What one WQE carries, at most: a power of two below the 2^31 that InfiniBand allows. */
#define MESSAGE_MAX (1u << 30)

static int net_control(void *net, struct tq_peer *peer, const void *msg, uint32_t len,
		       unsigned flags)
{
	return tq_control_send(net, peer->link, msg, len, flags);
}

static void *net_eager_buf(void *net, struct tq_peer *peer, uint32_t len)
{
	return tq_control_buf(net, peer->link, len);
}

static int net_eager_send(void *net, struct tq_peer *peer, void *buf, uint32_t len, unsigned flags)
{
	return tq_control_buf_send(net, peer->link, buf, len, flags);
}

static bool net_data_ready(void *net, struct tq_peer *peer)
{
	return tq_control_data_ready(net, peer->link);
}

static bool net_copy_get(void *net, uint64_t len, struct tq_sg *sg)
{
	return tq_copy_get(net, len, sg);
}

static bool net_reserve_get(void *net, uint64_t len, struct tq_sg *sg)
{
	return tq_control_piece_get(net, len, sg);
}

static void net_copy_put(void *net, struct tq_sg *sg)
{
	tq_control_copy_put(net, sg);
}

static struct tq_lane *net_lane_get(void *net, struct tq_peer *peer)
{
	return tq_lane_hold_get(net, peer->link);
}

static void net_lane_put(void *net, struct tq_lane *lane)
{
	tq_lane_hold_put(net, lane);
}

static int net_direct(void *net, struct tq_peer *peer, struct tq_lane *lane, uint32_t srqn,
		      const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	if (flags & TQ_DIRECT_BULK)
		return tq_rdma_direct(net, peer->link, srqn, sg, nsg, flags, token);
	return tq_lane_direct(net, peer->link, lane, srqn, sg, nsg, flags, token);
}

static int net_read(void *net, struct tq_peer *peer, const struct tq_sg *sg, int nsg, uint64_t addr,
		    uint32_t rkey, void *token)
{
	return tq_rdma_start(net, peer->link, IBV_WR_RDMA_READ, sg, nsg, addr, rkey, token);
}

static int net_write(void *net, struct tq_peer *peer, const struct tq_sg *sg, int nsg,
		     uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_start(net, peer->link, IBV_WR_RDMA_WRITE, sg, nsg, addr, rkey, token);
}

static int net_atomic(void *net, struct tq_peer *peer, const struct tq_atomic *atomic,
		      const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_atomic(net, peer->link, atomic, sg, addr, rkey, token);
}

static struct tq_srq *net_srq_get(void *net, uint32_t *srqn)
{
	return tq_srq_get(net, srqn);
}

static int net_srq_post(void *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg, void *token)
{
	return tq_srq_post(net, srq, sg, nsg, token);
}

static void net_srq_put(void *net, struct tq_srq *srq, bool safe)
{
	tq_srq_put(net, srq, safe);
}

static struct tq_reg *net_reg(void *net, void *addr, uint64_t len, bool write, void **cookie)
{
	return tq_mem_reg(net, addr, len, write, cookie);
}

static void net_unreg(void *net, struct tq_reg *reg, void *cookie)
{
	tq_mem_unreg(net, reg, cookie);
}

static void net_bounce_put(void *net, struct tq_bounce *bounce)
{
	tq_control_bounce_put(net, bounce);
}

static void net_backpressure(void *net, bool stop)
{
	tq_control_backpressure(net, stop);
}

static void net_report(void *net, struct tq_lane *lane)
{
	tq_lane_report(net, lane);
}

static void net_peer_fail(void *net, struct tq_peer *peer, const char *why)
{
	tq_link_fail(net, peer->link, TQ_FAIL_GIVEN_UP, "%s", why);
}

const struct tq_net_ops tq_net_ops = {
	.control = net_control,
	.eager_buf = net_eager_buf,
	.eager_send = net_eager_send,
	.data_ready = net_data_ready,
	.copy_get = net_copy_get,
	.reserve_get = net_reserve_get,
	.copy_put = net_copy_put,
	.lane_get = net_lane_get,
	.lane_put = net_lane_put,
	.direct = net_direct,
	.report = net_report,
	.peer_fail = net_peer_fail,
	.read = net_read,
	.write = net_write,
	.atomic = net_atomic,
	.srq_get = net_srq_get,
	.srq_post = net_srq_post,
	.srq_put = net_srq_put,
	.reg = net_reg,
	.unreg = net_unreg,
	.bounce_put = net_bounce_put,
	.backpressure = net_backpressure,
};

static uint32_t least(int64_t a, int64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static uint32_t most(int64_t a, int64_t b)
{
	return (uint32_t)(a > b ? a : b);
}

static uint32_t pieces(const struct tq_params *params, int64_t most)
{
	uint32_t n = least(least(params->pieces, TQ_MAX_PIECES), most);

	return n > 1 ? n : 1;
}

/* What doesn't depend on memory; max_direct is the sink's. */
static int limits_open(struct tq_net *net)
{
	const struct ibv_device_attr *attr = &net->dev.attr;
	const struct tq_params *params = net->params;
	struct tq_net_limits *l = &net->limits;

	l->max_inline = net->dev.max_inline;
	l->max_send = least(net->dev.port.max_msg_sz, MESSAGE_MAX);
	/* Whatever the protocol: a peer may have another one. */
	l->eager_max = most(PIECE_MIN, most(params->eager_limit, params->eager_max));
	l->eager_max = least(l->eager_max, l->max_send - (uint32_t)sizeof(struct tq_msg_eager));
	l->max_sge = pieces(params, attr->max_sge);
	/* Of an XRC read as of any. Not every driver fills it in. */
	l->max_sge_rd = least(l->max_sge, attr->max_sge_rd > 1 ? attr->max_sge_rd : 1);
	/* A receive has the sink as well. */
	l->max_srq_sge = pieces(params, attr->max_srq_sge - 1);
	l->srq_depth = least(params->tuple_depth, attr->max_srq_wr);
	l->has_atomics = attr->atomic_cap != IBV_ATOMIC_NONE;
	return 0;
}

/* In order of opening. */
static const struct {
	int (*open)(struct tq_net *net);
	void (*close)(struct tq_net *net);
} parts[] = {
	{tq_device_open, tq_device_close},
	{limits_open, NULL},
	{tq_xrcd_open, tq_xrcd_close},
	{tq_cqs_open, tq_cqs_close},
	{tq_mem_open, tq_mem_close},
	{tq_srqs_open, tq_srqs_close},
	{tq_control_open, tq_control_close},
	{tq_rdma_open, tq_rdma_close},
	{tq_connections_open, tq_connections_close},
};

static void close_first(struct tq_net *net, size_t n)
{
	while (n-- > 0)
		if (parts[n].close)
			parts[n].close(net);
}

int tq_net_open(struct tq_net *net)
{
	size_t i;
	int rc;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		rc = parts[i].open(net);
		if (rc) {
			close_first(net, i);
			return rc;
		}
	}
	return 0;
}

void tq_net_close(struct tq_net *net)
{
	close_first(net, sizeof(parts) / sizeof(parts[0]));
}

int tq_net_work(struct tq_net *net)
{
	uint64_t next;
	int events;

	if (++net->works % LOOK_AT_DEVICE == 0)
		tq_device_events(net);
	if (net->broken_reason && !net->broken_handled)
		tq_conn_break(net);
	events = net->rcq.drained ? tq_srqs_poll(net) : 0;
	events += tq_control_poll(net);
	events += tq_rdma_poll(net);
	if (net->putting)
		events += tq_put_poll(net);
	events += tq_connections_poll(net, &next);
	return events;
}

int tq_net_poll(struct tq_net *net, int budget)
{
	int events = tq_cq_poll(net, budget);

	return events + tq_net_work(net);
}
