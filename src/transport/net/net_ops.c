/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net_ops.h"

#include "base/clock.h"
#include "net/adapter/copy.h"
#include "net/adapter/mem.h"
#include "net/adapter/srq.h"
#include "net/adapter/timers.h"
#include "net/channel/bank.h"
#include "net/channel/control.h"
#include "net/channel/peer_memory.h"
#include "net/channel/rdma.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/lane_direct.h"
#include "net/lanes/outbox.h"
#include "net/peers/link_fail.h"

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
 * after three times that (proto/sender/overdue.c); a shorter time would announce messages in vain.
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
