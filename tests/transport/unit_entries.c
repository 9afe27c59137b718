/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of the protocol that ep/ and net/ call assert that the core's lock is held. In
 * builds that check this (--enable-debug, sanitizers), a call without the lock ends the process; in
 * others the call works. With the lock each call works.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/rma.h"
#include "proto/sender/send.h"
#include "unit.h"

#define TAG      7
#define BITS_CTX 6

static struct tq_lock lock;
static struct tq_peer other;

/* ---- a network with lanes ---- */

static struct tq_net_ops network;
static void *posted; /* the send or RDMA operation that was posted last */

static struct tq_lane *lane_get(struct tq_net *net, struct tq_link *link)
{
	(void)net, (void)link;
	return (struct tq_lane *)&network;
}

static void lane_put(struct tq_net *net, struct tq_lane *lane)
{
	(void)net, (void)lane;
}

static int direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		  const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	(void)net, (void)link, (void)lane, (void)srqn, (void)sg, (void)nsg, (void)flags;
	posted = token;
	return 0;
}

static int post_write(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		      uint64_t addr, uint32_t rkey, void *token)
{
	(void)net, (void)link, (void)sg, (void)nsg, (void)addr, (void)rkey;
	posted = token;
	return 0;
}

static void start_network(void)
{
	network = *unit.core.ops;
	network.lane_get = lane_get;
	network.lane_put = lane_put;
	network.direct = direct;
	network.write = post_write;
	unit.core.ops = &network;
}

/* ---- a context with match bits ---- */

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	(void)arg, (void)entry, (void)envelope, (void)take;
	return TQ_TAKE;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	(void)arg, (void)envelope, (void)take;
	return TQ_KEEP;
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	(void)arg, (void)user, (void)arrival;
}

static const struct tq_match_ops match_ops = {match, unexpected, done};
static struct tq_ctx *bits_ctx;

/* ---- the calls ---- */

static char data[8];
static const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
static struct tq_status status;
static struct tq_req *req;
static struct tq_msg *msg;
static tq_entry_id appended;

/* Takes in a message for the receive of TAG, which asks for a queue if `asking`. */
static void eager_comes(bool asking)
{
	const struct tq_msg_eager m = {.hdr = {.type = TQ_MSG_EAGER},
				       .env = {.ctx = tq_put32(UNIT_CTX),
					       .tag = tq_put64(TAG),
					       .ask = tq_put32(asking),
					       .mask_life = tq_put16(1)}};

	unit_comes(&m, sizeof(m));
}

static void call_poll(void)
{
	tq_core_poll(&unit.core);
}

static void call_is_idle(void)
{
	tq_core_is_idle(&unit.core);
}

static void call_ended(void)
{
	tq_core_ended(&unit.core);
}

static void call_ended_unfailed(void)
{
	tq_core_ended_unfailed(&unit.core);
}

static void call_peer_init(void)
{
	if (tq_core_peer_init(&unit.core, &other, NULL, NULL))
		_exit(1);
}

static void call_peer_fini(void)
{
	tq_core_peer_fini(&unit.core, &unit.peer);
}

static void call_peer_is_idle(void)
{
	tq_core_peer_is_idle(&unit.peer);
}

static void call_ctx_add(void)
{
	struct tq_peer *const peers[] = {&unit.peer};
	struct tq_ctx *added;

	tq_core_ctx_add(&unit.core, 6, peers, 1, 0, 0, &added);
}

static void call_ctx_add_bits(void)
{
	struct tq_peer *const peers[] = {&unit.peer};

	if (tq_core_ctx_add_bits(&unit.core, BITS_CTX, peers, 1, 0, 0, 0, &match_ops, NULL,
				 &bits_ctx))
		_exit(1);
}

static void call_ctx_set_flags(void)
{
	tq_core_ctx_set_flags(unit.ctx, TQ_CTX_NO_ANY_TAG);
}

static void call_ctx_has_queues(void)
{
	tq_core_ctx_has_queues(unit.ctx);
}

static void call_ctx_join(void)
{
	if (tq_core_ctx_join(unit.ctx, &unit.peer))
		_exit(1);
}

static void call_ctx_revoke(void)
{
	tq_core_ctx_revoke(unit.ctx, false, -EIO);
}

static void call_ctx_remove(void)
{
	tq_core_ctx_remove(unit.ctx);
}

static void call_send(void)
{
	tq_core_send(unit.ctx, 0, TAG, &buf, 0, NULL, &req);
}

static void call_send_bits(void)
{
	if (tq_core_send_bits(bits_ctx, 0, TAG, "", &buf, 0, NULL, &req) != 1)
		_exit(1);
}

static void call_pays_to_wait(void)
{
	tq_core_pays_to_wait(unit.ctx, 0, sizeof(data));
}

static void call_recv_should_poll(void)
{
	tq_core_recv_should_poll(unit.ctx, 0, TAG);
}

static void call_recv(void)
{
	tq_core_recv(unit.ctx, 0, TAG, &buf, NULL, &req, &status);
}

static void call_cancel(void)
{
	tq_core_cancel(req);
}

static void call_end_receives(void)
{
	tq_core_end_receives(&unit.core, UNIT_CTX, TAG, -EIO);
}

static void prepare_release(void)
{
	eager_comes(false);
	req = tq_core_ended(&unit.core);
	if (!req)
		_exit(1);
}

static void call_release(void)
{
	tq_core_release(req);
}

static void call_probe(void)
{
	tq_core_probe(unit.ctx, 0, TAG, &status);
}

static void call_mprobe(void)
{
	tq_core_mprobe(unit.ctx, 0, TAG, &status, &msg);
}

static void prepare_mrecv(void)
{
	eager_comes(false);
	eager_comes(false); /* the first one ends the receive */
	if (tq_core_mprobe(unit.ctx, 0, TAG, &status, &msg) != 1)
		_exit(1);
}

static void call_mrecv(void)
{
	if (tq_core_mrecv(msg, &buf, NULL, &req, &status) != 1)
		_exit(1);
}

static void call_entry_append(void)
{
	const struct tq_want want = {.tag = TAG};

	if (tq_core_entry_append(bits_ctx, &want, &buf, 0, NULL, &appended))
		_exit(1);
}

static void prepare_entry_remove(void)
{
	call_ctx_add_bits();
	call_entry_append();
}

static void call_entry_remove(void)
{
	if (tq_core_entry_remove(bits_ctx, appended))
		_exit(1);
}

static void written(void *user, int error)
{
	(void)user, (void)error;
}

static void call_rma(void)
{
	const struct tq_rma rma = {
		.kind = TQ_RMA_WRITE, .local = data, .len = sizeof(data), .done = written};

	if (tq_core_rma(&unit.peer, &rma, NULL))
		_exit(1);
}

static void call_tuple_infos(void)
{
	struct tq_tuple_info info;

	tq_core_tuple_infos(&unit.core, &info, 1);
}

static void call_on_control(void)
{
	struct tq_msg_answer fin = {.hdr = tq_msg_hdr(TQ_MSG_FIN, 0)};

	tq_core_on_control(&unit.core, &unit.peer, &fin, sizeof(fin), NULL);
}

/* Has a send posted to a tuple queue of the peer. */
static void prepare_on_sent(void)
{
	struct tq_msg_srqn offer = {.hdr = {.type = TQ_MSG_SRQN},
				    .rx_tuple = tq_put32(1),
				    .srqn = tq_put32(7),
				    .max_len = tq_put64(4096)};

	unit_set("promote_after", "0");
	for (int i = 0; i < 10 && !unit.asks.n; i++)
		unit_send(TAG, sizeof(data));
	if (!unit.asks.n)
		_exit(1);
	offer.tx_tuple = tq_put32(unit.asks.of[0]);
	unit_comes(&offer, sizeof(offer));
	unit_send(TAG, sizeof(data));
	if (!posted)
		_exit(1);
}

static void call_on_sent(void)
{
	tq_core_on_sent(&unit.core, posted, 0);
}

static void call_on_rdma_done(void)
{
	tq_core_on_rdma_done(&unit.core, posted, 0);
}

/* Has a receive lie in the queue of a tuple. */
static void prepare_on_delivered(void)
{
	struct tq_msg_switch m = {.hdr = {.type = TQ_MSG_SWITCH}, .seq = tq_put32(1)};

	eager_comes(true);
	unit_poll();
	if (!unit.offers.n)
		_exit(1);
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	unit_comes(&m, sizeof(m));
	if (unit_recv(0, TAG, &req) || !unit.posted)
		_exit(1);
}

static void call_on_delivered(void)
{
	tq_core_on_delivered(&unit.core, unit.posted, 0, NULL);
}

static void call_on_reminded(void)
{
	tq_core_on_reminded(&unit.core);
}

static void call_on_lane_ready(void)
{
	tq_core_on_lane_ready(&unit.core, &unit.peer);
}

static void call_take_awaited(void)
{
	tq_core_take_awaited(&unit.peer);
}

static void call_awaits_answer(void)
{
	tq_core_awaits_answer(&unit.peer);
}

static void call_on_peer_failed(void)
{
	tq_core_on_peer_failed(&unit.core, &unit.peer);
}

static void call_on_srqs_gone(void)
{
	tq_core_on_srqs_gone(&unit.core);
}

static void call_on_broken(void)
{
	tq_core_on_broken(&unit.core);
}

/* tests/lint/locked.py checks that each function is here. */
#define ENTRY(name)                                  \
	{                                            \
		"tq_core_" #name, NULL, call_##name, \
	}
/* The call needs a preparation, without the lock. */
#define PREPARED(name, prepare)                         \
	{                                               \
		"tq_core_" #name, prepare, call_##name, \
	}
static const struct entry {
	const char *name;
	void (*prepare)(void);
	void (*call)(void);
} entries[] = {
	ENTRY(poll),
	ENTRY(is_idle),
	ENTRY(ended),
	ENTRY(ended_unfailed),
	ENTRY(peer_init),
	ENTRY(peer_fini),
	ENTRY(peer_is_idle),
	ENTRY(ctx_add),
	ENTRY(ctx_add_bits),
	ENTRY(ctx_set_flags),
	ENTRY(ctx_has_queues),
	ENTRY(ctx_join),
	ENTRY(ctx_revoke),
	ENTRY(ctx_remove),
	ENTRY(send),
	PREPARED(send_bits, call_ctx_add_bits),
	ENTRY(pays_to_wait),
	ENTRY(recv_should_poll),
	ENTRY(recv),
	ENTRY(cancel),
	ENTRY(end_receives),
	PREPARED(release, prepare_release),
	ENTRY(probe),
	ENTRY(mprobe),
	PREPARED(mrecv, prepare_mrecv),
	PREPARED(entry_append, call_ctx_add_bits),
	PREPARED(entry_remove, prepare_entry_remove),
	ENTRY(rma),
	ENTRY(tuple_infos),
	ENTRY(on_control),
	PREPARED(on_sent, prepare_on_sent),
	PREPARED(on_rdma_done, call_rma),
	PREPARED(on_delivered, prepare_on_delivered),
	ENTRY(on_reminded),
	ENTRY(on_lane_ready),
	ENTRY(take_awaited),
	ENTRY(awaits_answer),
	ENTRY(on_peer_failed),
	ENTRY(on_srqs_gone),
	ENTRY(on_broken),
};

/* ---- the child processes ---- */

#ifdef TQ_LOCK_CHECKS
#define WITHOUT SIGABRT
#else
#define WITHOUT 0
#endif

static const struct entry *entry_of_child;
static bool held;

/* Makes the call of a child, which has an endpoint and a receive of its own. */
static void child(void)
{
	unit_start(NULL, NULL);
	start_network();
	if (unit_recv(0, TAG, &req))
		_exit(1);
	if (entry_of_child->prepare)
		entry_of_child->prepare();
	unit.core.lock = &lock;
	if (held)
		tq_lock(&lock);
	entry_of_child->call();
}

int main(void)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		entry_of_child = &entries[i];
		held = true;
		unit_check("with the lock", entries[i].name, unit_ends_by(child) == 0);
		held = false;
		unit_check("without the lock", entries[i].name, unit_ends_by(child) == WITHOUT);
	}
	return unit_status();
}
