/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net.h"

#include "base/util.h"
#include "net/adapter/choose.h"
#include "net/adapter/copy.h"
#include "net/adapter/mem.h"
#include "net/adapter/srq.h"
#include "net/adapter/timers.h"
#include "net/adapter/xrcd.h"
#include "net/channel/bank.h"
#include "net/channel/control.h"
#include "net/channel/inbox.h"
#include "net/channel/peer_memory.h"
#include "net/channel/rdma.h"
#include "net/connections.h"
#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/outbox.h"
#include "net/peers/link_life.h"

static bool is_local(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	return tq_outbox_is_attached(link);
}

static bool control_moves(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	return tq_control_moves(link);
}

static int direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		  const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	if (flags & TQ_DIRECT_BULK)
		return tq_rdma_direct(net, link, srqn, sg, nsg, flags, token);
	return tq_lane_direct(net, link, lane, srqn, sg, nsg, flags, token);
}

static int read_memory(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		       uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_start(net, link, IBV_WR_RDMA_READ, sg, nsg, addr, rkey, token);
}

static int write_memory(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
			uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_start(net, link, IBV_WR_RDMA_WRITE, sg, nsg, addr, rkey, token);
}

static void peer_fail(struct tq_net *net, struct tq_link *link, const char *why)
{
	tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "%s", why);
	/* Now, and not only in tq_links_tear_down(): the protocol may end the peer's sends before
	 * that, and from then on the peer must not use what it reads of their memory. */
	tq_outbox_cut(link);
}

/* ns, longer than most messages take. A message with match bits that has no entry comes to light
 * after three times that (proto/sender/tx_tuple_table.c); a shorter time would announce messages in
 * vain.
 */
#define REMIND_AFTER (TQ_MS / 4)

static void remind_due(struct tq_net *net, void *owner, uint64_t now)
{
	(void)owner;
	(void)now;
	tq_core_on_reminded(net->core);
}

static void remind(struct tq_net *net)
{
	tq_assert_held(net->lock);
	tq_timer_arm(net, &net->remind_timer, tq_now() + REMIND_AFTER, remind_due, NULL);
}

const struct tq_net_ops tq_net_ops = {
	.control = tq_control_send,
	.eager_buf = tq_control_buf,
	.eager_send = tq_control_buf_send,
	.prepare_data = tq_control_prepare_data,
	.is_local = is_local,
	.try_readable = tq_peer_memory_try,
	.copy = tq_peer_memory_copy,
	.control_moves = control_moves,
	.copy_get = tq_copy_get,
	.reserve_get = tq_copy_get_piece,
	.copy_put = tq_copy_put,
	.lane_get = tq_lane_hold_get,
	.lane_put = tq_lane_hold_put,
	.direct = direct,
	.report = tq_lane_report,
	.remind = remind,
	.peer_fail = peer_fail,
	.read = read_memory,
	.write = write_memory,
	.atomic = tq_rdma_atomic,
	.srq_get = tq_srq_get,
	.srq_post = tq_srq_post,
	.srq_put = tq_srq_put,
	.reg = tq_mem_reg_get,
	.unreg = tq_mem_reg_put,
	.bounce_put = tq_bank_bounce_put,
	.backpressure = tq_control_backpressure,
};

/* The least control_data_max: eager messages may be switched off, pieces may not. */
#define PIECE_MIN 1024u

/* Rounds of work between two looks at the adapter's events, which are a system call. */
#define LOOK_AT_DEVICE 256

/* Polls that find messages in shared memory until one also looks at the adapter's queues. */
#define INBOX_TURNS 4

/* The most that one WQE carries: a power of two below the 2^31 that InfiniBand allows. */
#define MESSAGE_MAX (1u << 30)

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

/* Returns the bytes that the port sends in the time that its adapter pauses after an RNR NAK. */
static uint64_t rnr_bytes(const struct tq_net *net)
{
	/* In units of 10 us, by the code of the time (IBA 9.7.5.2.8). */
	static const uint32_t times[] = {65536, 1,    2,    3,     4,     6,     8,     12,
					 16,    24,   32,   48,    64,    96,    128,   192,
					 256,   384,  512,  768,   1024,  1536,  2048,  3072,
					 4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return (uint64_t)tq_port_speed(&net->dev.port) * times[net->params->rnr_timer] * 10;
}

/* Sets the limits that don't depend on memory. The sink sets max_direct. */
static int limits_open(struct tq_net *net)
{
	const struct ibv_device_attr *attr = &net->dev.attr;
	const struct tq_params *params = net->params;
	struct tq_net_limits *limits = &net->limits;

	limits->max_inline = net->dev.max_inline;
	limits->max_send = least(net->dev.port.max_msg_sz, MESSAGE_MAX);
	/* Independent of the protocol parameter: a peer may have another one. */
	limits->control_data_max = most(PIECE_MIN, most(params->eager_limit, params->eager_max));
	limits->control_data_max = least(limits->control_data_max,
					 limits->max_send - (uint32_t)sizeof(struct tq_msg_eager));
	limits->max_sge = pieces(params, attr->max_sge);
	/* Not every driver fills in max_sge_rd, which holds for XRC reads, too. */
	limits->max_sge_rd = least(limits->max_sge, attr->max_sge_rd > 1 ? attr->max_sge_rd : 1);
	/* A receive needs one SGE for the sink. */
	limits->max_srq_sge = pieces(params, attr->max_srq_sge - 1);
	limits->rnr_bytes = rnr_bytes(net);
	limits->srq_depth = least(params->tuple_depth, attr->max_srq_wr);
	limits->has_atomics = attr->atomic_cap != IBV_ATOMIC_NONE;
	return 0;
}

/* The parts of the network, in the order of opening. */
static const struct {
	int (*open)(struct tq_net *net);
	void (*close)(struct tq_net *net);
} parts[] = {
	{tq_device_choose, tq_device_release},
	{tq_device_open, tq_device_close},
	{limits_open, NULL},
	{tq_xrcd_open, tq_xrcd_close},
	{tq_cqs_open, tq_cqs_close},
	{tq_mem_open, tq_mem_close},
	{tq_copies_open, tq_copies_close},
	{tq_srqs_open, tq_srqs_close},
	{tq_inbox_open, tq_inbox_close},
	{tq_control_open, tq_control_close},
	{tq_banks_open, tq_banks_close},
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
	int events;

	tq_assert_held(net->lock);
	if (++net->works % LOOK_AT_DEVICE == 0)
		tq_device_events(net);
	if (net->broken_reason && !net->broken_handled)
		tq_connections_break(net);
	events = net->rcq.empty ? tq_srqs_poll(net) : 0;
	events += tq_control_poll(net);
	events += tq_rdma_poll(net);
	if (net->putting)
		events += tq_put_poll(net);
	events += tq_connections_poll(net);
	return events;
}

int tq_net_events(struct tq_net *net, int budget)
{
	int events = tq_cq_poll(net, budget);

	return net->inbox ? events + tq_inbox_poll(net) : events;
}

int tq_net_events_soon(struct tq_net *net, int budget)
{
	int events;

	tq_assert_held(net->lock);
	if (!net->inbox)
		return tq_cq_poll(net, budget);
	events = tq_inbox_poll(net);
	if (!events || ++net->inbox_turns % INBOX_TURNS == 0)
		return events + tq_cq_poll(net, budget);
	net->rcq.empty = false; /* nobody has looked */
	return events;
}

int tq_net_poll(struct tq_net *net, int budget)
{
	int events;

	tq_assert_held(net->lock);
	events = tq_net_events(net, budget);
	return events + tq_net_work(net);
}
