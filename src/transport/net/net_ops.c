/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net_ops.h"

#include "base/clock.h"
#include "net/bank.h"
#include "net/control.h"
#include "net/copy.h"
#include "net/lane_connect.h"
#include "net/lane_direct.h"
#include "net/link_fail.h"
#include "net/mem.h"
#include "net/outbox.h"
#include "net/peer_memory.h"
#include "net/rdma.h"
#include "net/srq.h"
#include "net/timers.h"

static int net_control(void *net, struct tq_link *link, const void *msg, uint32_t len,
		       unsigned flags)
{
	return tq_control_send(net, link, msg, len, flags);
}

static void *net_eager_buf(void *net, struct tq_link *link, uint32_t len)
{
	return tq_control_buf(net, link, len);
}

static int net_eager_send(void *net, struct tq_link *link, void *buf, uint32_t len, unsigned flags)
{
	return tq_control_buf_send(net, link, buf, len, flags);
}

static bool net_prepare_data(void *net, struct tq_link *link)
{
	return tq_control_prepare_data(net, link);
}

static bool net_is_local(void *arg, struct tq_link *link)
{
	const struct tq_net *net = arg;

	tq_assert_held(net->lock);
	return tq_outbox_is_attached(link);
}

static bool net_try_readable(void *net, struct tq_link *link)
{
	return tq_peer_memory_try(net, link);
}

static int net_copy(void *net, struct tq_link *link, void *to, uint64_t addr, uint64_t len)
{
	return tq_peer_memory_copy(net, link, to, addr, len);
}

static bool net_control_moves(void *arg, struct tq_link *link)
{
	const struct tq_net *net = arg;

	tq_assert_held(net->lock);
	return tq_control_moves(link);
}

static bool net_copy_get(void *net, uint64_t len, struct tq_sg *sg)
{
	return tq_copy_get(net, len, sg);
}

static bool net_reserve_get(void *net, uint64_t len, struct tq_sg *sg)
{
	return tq_copy_get_piece(net, len, sg);
}

static void net_copy_put(void *net, struct tq_sg *sg)
{
	tq_copy_put(net, sg);
}

static struct tq_lane *net_lane_get(void *net, struct tq_link *link)
{
	return tq_lane_hold_get(net, link);
}

static void net_lane_put(void *net, struct tq_lane *lane)
{
	tq_lane_hold_put(net, lane);
}

static int net_direct(void *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		      const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	if (flags & TQ_DIRECT_BULK)
		return tq_rdma_direct(net, link, srqn, sg, nsg, flags, token);
	return tq_lane_direct(net, link, lane, srqn, sg, nsg, flags, token);
}

static int net_read(void *net, struct tq_link *link, const struct tq_sg *sg, int nsg, uint64_t addr,
		    uint32_t rkey, void *token)
{
	return tq_rdma_start(net, link, IBV_WR_RDMA_READ, sg, nsg, addr, rkey, token);
}

static int net_write(void *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		     uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_start(net, link, IBV_WR_RDMA_WRITE, sg, nsg, addr, rkey, token);
}

static int net_atomic(void *net, struct tq_link *link, const struct tq_atomic *atomic,
		      const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token)
{
	return tq_rdma_atomic(net, link, atomic, sg, addr, rkey, token);
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
	return tq_mem_reg_get(net, addr, len, write, cookie);
}

static void net_unreg(void *net, struct tq_reg *reg, void *cookie)
{
	tq_mem_reg_put(net, reg, cookie);
}

static void net_bounce_put(void *net, struct tq_bounce *bounce)
{
	tq_bank_bounce_put(net, bounce);
}

static void net_backpressure(void *net, bool stop)
{
	tq_control_backpressure(net, stop);
}

static void net_report(void *net, struct tq_lane *lane)
{
	tq_lane_report(net, lane);
}

static void net_peer_fail(void *net, struct tq_link *link, const char *why)
{
	tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "%s", why);
	/* Now, and not only in tq_links_tear_down(): the protocol may end the peer's sends before
	 * that, and from then on the peer must not use what it reads of their memory. */
	tq_outbox_cut(link);
}

/* ns, longer than most messages take. A message with match bits that has no entry comes to light
 * after three times that (proto/overdue.c); a shorter time would announce messages in vain. */
#define REMIND_AFTER (TQ_MS / 4)

static void remind_due(struct tq_net *net, void *owner, uint64_t now)
{
	(void)owner;
	(void)now;
	tq_core_on_reminded(net->core);
}

static void net_remind(void *arg)
{
	struct tq_net *net = arg;

	tq_assert_held(net->lock);
	tq_timer_arm(net, &net->remind_timer, tq_now() + REMIND_AFTER, remind_due, NULL);
}

const struct tq_net_ops tq_net_ops = {
	.control = net_control,
	.eager_buf = net_eager_buf,
	.eager_send = net_eager_send,
	.prepare_data = net_prepare_data,
	.is_local = net_is_local,
	.try_readable = net_try_readable,
	.copy = net_copy,
	.control_moves = net_control_moves,
	.copy_get = net_copy_get,
	.reserve_get = net_reserve_get,
	.copy_put = net_copy_put,
	.lane_get = net_lane_get,
	.lane_put = net_lane_put,
	.direct = net_direct,
	.report = net_report,
	.remind = net_remind,
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
