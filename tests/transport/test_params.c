/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter and the protocol follow the parameters.
 *
 * test_params [NAME], under "softhca run --nodes 1"
 */
#include <string.h>
#include <sys/mman.h>

#include "many.h"
#include "net/peers/link.h"
#include "net/target.h"

static struct ibv_qp_attr ask(struct ibv_qp *qp)
{
	const int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			 IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	t_true(!ibv_query_qp(qp, &attr, mask, &init), "a QP can't be queried");
	return attr;
}

/* Checks the attributes of the path, which are alike at both ends of a connection. */
static void path_is(const struct ibv_qp_attr *qp, const char *which)
{
	t_true(qp->path_mtu == IBV_MTU_1024, "%s: the MTU is number %d", which, qp->path_mtu);
	t_true(qp->ah_attr.sl == 2, "%s: the SL is %d", which, qp->ah_attr.sl);
	t_true(qp->ah_attr.is_global && qp->ah_attr.grh.sgid_index == 0, "%s: no GRH", which);
	t_true(qp->ah_attr.grh.traffic_class == 96, "%s: the traffic class is %d", which,
	       qp->ah_attr.grh.traffic_class);
}

static void attributes(void)
{
	static const char *const params[] = {
		"timeout=10",      "retry_count=3", "rnr_timer=5",      "mtu=1024",
		"service_level=2", "gid_index=0",   "traffic_class=96", NULL};
	const struct tq_link *link;
	struct tq_target *target, *tmp;
	struct ibv_qp_attr qp;
	struct tq_ctx *ctx[2];
	int targets = 0;

	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	link = many_peers[0][1]->link;
	qp = ask(link->node->control->qp);
	path_is(&qp, "INI");
	t_true(qp.timeout == 10 && qp.retry_cnt == 3 && qp.rnr_retry == 7 && qp.max_rd_atomic == 16,
	       "the QP that sends has %d, %d, %d and %d", qp.timeout, qp.retry_cnt, qp.rnr_retry,
	       qp.max_rd_atomic);
	HASH_ITER(hh, many_eps[1]->net.connections->targets, target, tmp) {
		qp = ask(target->qp);
		path_is(&qp, "TGT");
		t_true(qp.min_rnr_timer == 5 && qp.max_dest_rd_atomic == 16,
		       "the QP that receives has %d and %d", qp.min_rnr_timer,
		       qp.max_dest_rd_atomic);
		targets++;
	}
	t_true(targets > 0, "there are no targets");
}

/*
 * Sends messages on a tuple that has its queue, before or after their receives. Returns how often
 * the queue was recalled because messages came early.
 */
static uint64_t recalls(const char *giveback_after, size_t bytes, bool early)
{
	enum { MESSAGES = 40 };
	const char *const params[] = {giveback_after, "promote_after=0", NULL};
	static char text[16 << 10], data[16 << 10];
	struct many_op sent, got;
	struct tq_ctx *ctx[2];

	memset(text, 'x', bytes - 1);
	many_start_apart(2, params, ctx);
	for (int i = 0; i < 3; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	t_true(many_counter(1, "promotions") == 1, "the tuple has no queue");
	for (int i = 0; i < MESSAGES; i++) {
		if (!early)
			many_recv_long(ctx[1], 0, MANY_TAG, data, sizeof(data), &got);
		many_send(ctx[0], 1, MANY_TAG, text, 0, &sent);
		many_spin(300);
		if (early)
			many_recv_long(ctx[1], 0, MANY_TAG, data, sizeof(data), &got);
		t_true(many_comes(&got) && many_comes(&sent), "message %d didn't come", i);
		t_true(!memcmp(text, data, bytes), "message %d is wrong", i);
	}
	return many_counter(1, "recalls_early");
}

static void early_short(void)
{
	t_true(recalls("giveback_after=8", 64, true) > 0, "the tuple keeps its queue");
}

static void early_medium(void)
{
	t_true(recalls("giveback_after=8", 16000, true) > 0, "the tuple keeps its queue");
}

static void early_but_kept(void)
{
	t_true(recalls("giveback_after=0", 64, true) == 0, "the tuple is recalled");
}

static void in_time(void)
{
	t_true(recalls("giveback_after=1", 64, false) == 0, "the tuple is recalled");
}

static void in_time_medium(void)
{
	t_true(recalls("giveback_after=1", 16000, false) == 0, "the tuple is recalled");
}

/* If the whole address space is registered, read-only memory can be sent as well. */
static void on_demand(void)
{
	static const char *const params[] = {"odp=1", "promote_after=0", NULL};
	enum { SIZE = 64 << 10 };
	static char data[SIZE];
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	char *text;

	text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t_true(text != MAP_FAILED, "no memory");
	memset(text, 'x', SIZE - 1);
	t_true(!mprotect(text, SIZE, PROT_READ), "the memory can be written");
	many_start_apart(2, params, ctx);
	for (int i = 0; i < 3; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	many_recv_long(ctx[1], 0, MANY_TAG, data, SIZE, &got);
	many_spin(300);
	many_send(ctx[0], 1, MANY_TAG, text, 0, &sent);
	t_true(many_comes(&got) && many_comes(&sent) && !strcmp(data, text), "it didn't come");
	t_true(many_counter(0, "registrations") == 0, "buffers are registered");
	t_true(many_counter(0, "sent_direct") > 0, "it isn't sent direct");
}

const struct many_case many_cases[] = {
	{"attributes of connections", attributes},
	{"early short messages", early_short},
	{"early messages beyond eager_limit", early_medium},
	{"early messages without giveback_after", early_but_kept},
	{"short messages in time", in_time},
	{"messages beyond eager_limit in time", in_time_medium},
	{"the address space registered on demand", on_demand},
	{0},
};
