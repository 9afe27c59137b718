/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures between two processes. Process 1 is killed, or a connection breaks, at a chosen point of
 * traffic that has all kinds of messages. Then every operation ends, with success or with -EIO, and
 * one sentence names the other process. Operations that do not concern that process go on, and the
 * endpoint can be closed.
 *
 * test_failures killed|broken|full|queues|random|datagrams [SEED] [NAME] [PARAMETER=VALUE...],
 * under "softhca run --nodes 2"
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject.h"
#include "mix.h"
#include "net/lanes/lane.h"
#include "net/peers/oob.h"
#include "proto/common/msg.h"

#define RANDOM_RUNS 16
#define SMALL       16

static void after(struct duo *duo)
{
	mix_check_failed(duo);
	duo_close(duo);
}

/* ---- killed ---- */

static struct inject_point point;
static unsigned seed;

/* Sets the point at which this process fails. */
static void set_point(struct duo *duo)
{
	inject_rings(duo->ep);
	inject_set(&point);
}

/* Checks that the log says that the process has died: both share the file of the XRC domain. */
static void died(struct duo *duo)
{
	t_true(!strncmp(duo->error, "the other has died", strlen("the other has died")),
	       "what is said of its death is: %s", duo->error);
	after(duo);
}

static void killed(struct duo *duo)
{
	duo_meet(duo); /* each has added the other as a peer */
	if (duo->me)
		set_point(duo);
	mix_until_failed(duo);
	/* On a busy machine the process may have been given up before. The process dies all the
	 * same. */
	if (duo->me)
		raise(SIGKILL);
	died(duo);
}

/*
 * A process has published its address and ends, perhaps before the other has connected to it.
 */
static void killed_at_once(struct duo *duo)
{
	if (duo->me)
		raise(SIGKILL);
	duo_gone(duo);
	mix_until_failed(duo);
	after(duo);
}

/* The other process has nothing to send to the process that dies. */
static void awaited_only(struct duo *duo)
{
	duo_meet(duo);
	if (duo->me)
		raise(SIGKILL);
	mix_receive(duo);
	died(duo);
}

/* All messages are delivered. Then one process dies while both close. */
static void killed_in_close(struct duo *duo)
{
	for (unsigned i = 0; i < 8; i++)
		t_true(mix_round(duo, i), "it failed before");
	tq_flush(duo->ep);
	duo_meet(duo);
	if (duo->me) {
		set_point(duo);
		tq_ctx_remove(duo->ctx);
		tq_close(duo->ep);
		/*
		 * On a busy machine the other process may be gone already, and then needs no
		 * goodbye.
		 */
		raise(SIGKILL);
	}
	duo_close(duo);
}

#define DATAGRAM(type) INJECT_DATAGRAM, TQ_OOB_##type
#define CONTROL(type)  INJECT_CONTROL, TQ_MSG_##type
#define DIRECT(kind)   INJECT_DIRECT, TQ_LANE_##kind
#define BEFORE         INJECT_KILL_BEFORE
#define AFTER          INJECT_KILL_AFTER

static const struct {
	const char *name;
	struct inject_point point;
	const char *param; /* a parameter to set, or NULL */
	duo_fn *fn;
} kills[] = {
	{"with its address published", {0}, NULL, killed_at_once},
	{"while a receive waits for it", {0}, NULL, awaited_only},
	{"while a receive waits for it, without the thread", {0}, "service_thread=0", awaited_only},
	{"before it asks for a connection",
	 {DATAGRAM(REQ), 1, BEFORE, 0},
	 "connect_timeout=2",
	 killed},
	{"with its request on the way", {DATAGRAM(REQ), 1, AFTER, 0}, NULL, killed},
	{"before it answers a request", {DATAGRAM(REP), 1, BEFORE, 0}, NULL, killed},
	{"when it has answered", {DATAGRAM(REP), 1, AFTER, 0}, NULL, killed},
	{"before it answers for the bulk lane", {DATAGRAM(REP), 2, BEFORE, 0}, NULL, killed},
	{"before it answers for a hold lane", {DATAGRAM(REP), 3, BEFORE, 0}, NULL, killed},
	{"before EAGER", {CONTROL(EAGER), 3, BEFORE, 0}, NULL, killed},
	{"after EAGER", {CONTROL(EAGER), 3, AFTER, 0}, NULL, killed},
	{"after RTS", {CONTROL(RTS), 1, AFTER, 0}, NULL, killed},
	{"before FIN", {CONTROL(FIN), 1, BEFORE, 0}, NULL, killed},
	{"while it reads", {INJECT_READ, 0, 1, AFTER, 0}, NULL, killed},
	{"before CTS", {CONTROL(CTS), 1, BEFORE, 0}, "rendezvous=rput", killed},
	{"after CTS", {CONTROL(CTS), 1, AFTER, 0}, "rendezvous=rput", killed},
	{"while it writes", {INJECT_WRITE, 0, 1, AFTER, 0}, "rendezvous=rput", killed},
	{"before WRITTEN", {CONTROL(WRITTEN), 1, BEFORE, 0}, "rendezvous=rput", killed},
	{"before CTS_PIECES", {CONTROL(CTS_PIECES), 2, BEFORE, 0}, NULL, killed},
	{"amid pieces", {CONTROL(DATA), 3, AFTER, 0}, NULL, killed},
	{"before CREDIT", {CONTROL(CREDIT), 1, BEFORE, 0}, "credits=2", killed},
	{"before SRQN", {CONTROL(SRQN), 1, BEFORE, 0}, NULL, killed},
	{"after SRQN", {CONTROL(SRQN), 2, AFTER, 0}, NULL, killed},
	{"before SWITCH", {CONTROL(SWITCH), 1, BEFORE, 0}, NULL, killed},
	{"after SWITCH", {CONTROL(SWITCH), 2, AFTER, 0}, NULL, killed},
	{"before a direct message", {DIRECT(HOLD), 1, BEFORE, 0}, NULL, killed},
	{"amid direct messages", {DIRECT(HOLD), 20, AFTER, 0}, NULL, killed},
	{"with messages that are held", {CONTROL(EAGER), 12, AFTER, 0}, NULL, killed},
	{"before CTS_DIRECT", {CONTROL(CTS_DIRECT), 1, BEFORE, 0}, "hold_lanes=1", killed},
	{"amid what CTS_DIRECT granted", {DIRECT(BULK), 1, AFTER, 0}, "hold_lanes=1", killed},
	{"before RECALL", {CONTROL(RECALL), 1, BEFORE, 0}, NULL, killed},
	{"after RECALL", {CONTROL(RECALL), 1, AFTER, 0}, NULL, killed},
	{"before HELD", {CONTROL(HELD), 1, BEFORE, 0}, NULL, killed},
	{"between HELD and RECALLED", {CONTROL(HELD), 1, AFTER, 0}, NULL, killed},
	{"before RECALLED, at the fence", {CONTROL(RECALLED), 1, BEFORE, 0}, NULL, killed},
	{"after RECALLED", {CONTROL(RECALLED), 2, AFTER, 0}, NULL, killed},
	{"before it wakes the other", {DATAGRAM(WAKE), 1, BEFORE, 0}, NULL, killed},
	{"when it has woken the other", {DATAGRAM(WAKE), 1, AFTER, 0}, NULL, killed},
	{"before its goodbye", {DATAGRAM(BYE), 1, BEFORE, 0}, NULL, killed_in_close},
	{"after its goodbye", {DATAGRAM(BYE), 1, AFTER, 0}, NULL, killed_in_close},
	{"before it answers a goodbye", {DATAGRAM(BYE_ACK), 1, BEFORE, 0}, NULL, killed_in_close},
};

/* Returns true if no long message goes through the adapter. */
static bool is_shm(const char *intranode)
{
	return intranode && !strcmp(intranode, "shm");
}

/* Returns true if there is such a point in a job whose messages go through rings, or don't, and
 * whose long ones are copied by their receiver, or not. */
static bool occurs(const struct inject_point *at, bool rings, bool copies)
{
	if (copies && (at->what == INJECT_READ || at->what == INJECT_WRITE))
		return false;
	if (copies && at->what == INJECT_CONTROL &&
	    (at->type == TQ_MSG_CTS || at->type == TQ_MSG_WRITTEN))
		return false;
	if (at->what == INJECT_CONTROL && at->type == TQ_MSG_CREDIT)
		return !rings;
	return at->what != INJECT_DATAGRAM || at->type != TQ_OOB_WAKE || rings;
}

static void run_kills(const char *only)
{
	const char *intranode = getenv("TEST_INTRANODE");
	char name[100];
	int n;

	duo_param("rdma_chunk=64K");
	n = duo_param("connect_timeout=2");
	for (unsigned i = 0; i < sizeof(kills) / sizeof(kills[0]); i++) {
		snprintf(name, sizeof(name), "killed %s", kills[i].name);
		if ((only && !strstr(name, only)) ||
		    !occurs(&kills[i].point, intranode && strcmp(intranode, "hca"),
			    is_shm(intranode)))
			continue;
		point = kills[i].point;
		if (kills[i].param)
			duo_param(kills[i].param);
		duo_run_killed(name, kills[i].fn);
		duo_params_keep(n);
	}
}

/* ---- at random ---- */

static void run_random(unsigned runs)
{
	char name[100];

	duo_param("connect_timeout=2");
	for (unsigned i = 0; i < runs; i++) {
		unsigned n = 10 + (seed * 7919 + i) * 2654435761u % 997 % 400;

		snprintf(name, sizeof(name), "killed at post %u", n);
		point = (struct inject_point){INJECT_POST, 0, n, i % 2 ? BEFORE : AFTER, 0};
		duo_run_killed(name, killed);
	}
}

/* ---- broken ---- */

static void broken(struct duo *duo)
{
	bool mine = point.how == INJECT_BREAK ? duo->me == 0 : duo->me == 1;

	if (mine)
		set_point(duo);
	mix_until_failed(duo);
	mix_check_failed(duo);
	t_true(!strstr(duo->error, "died"), "of one that lives it is said: %s", duo->error);
	duo_meet(duo); /* the other was told so, and still believes that this process lives */
	duo_close(duo);
}

/* The other process goes on to send direct messages until it is told of the failure. */
static void broken_one_way(struct duo *duo)
{
	inject_slow_srqs(1000);
	broken(duo);
}

static const struct {
	const char *name;
	struct inject_point point;
	const char *param;
} breaks[] = {
	{"the control lane", {CONTROL(EAGER), 5, INJECT_BREAK, 0}, NULL},
	{"the control lane, later", {CONTROL(CREDIT), 1, INJECT_BREAK, 0}, "credits=2"},
	{"the bulk lane, amid a read", {INJECT_READ, 0, 3, INJECT_BREAK, 0}, NULL},
	{"the bulk lane, amid a write", {INJECT_WRITE, 0, 3, INJECT_BREAK, 0}, "rendezvous=rput"},
	{"the bulk lane, amid a direct message",
	 {DIRECT(BULK), 1, INJECT_BREAK, 0},
	 "hold_lanes=1"},
	{"a hold lane", {DIRECT(HOLD), 9, INJECT_BREAK, 0}, NULL},
	{"a hold lane with held messages",
	 {CONTROL(EAGER), 12, INJECT_BREAK_TARGET, TQ_LANE_HOLD},
	 NULL},
	{"the control lane's target",
	 {CONTROL(EAGER), 9, INJECT_BREAK_TARGET, TQ_LANE_CONTROL},
	 NULL},
	{"the bulk lane's target", {CONTROL(SWITCH), 2, INJECT_BREAK_TARGET, TQ_LANE_BULK}, NULL},
	{"hold lanes' targets", {DIRECT(HOLD), 9, INJECT_BREAK_TARGET, TQ_LANE_HOLD}, NULL},
};

static void run_breaks(const char *only)
{
	int n = duo_param("rdma_chunk=64K");
	char name[100];

	for (unsigned i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		snprintf(name, sizeof(name), "broken: %s", breaks[i].name);
		if (only && !strstr(name, only))
			continue;
		point = breaks[i].point;
		if (breaks[i].param)
			duo_param(breaks[i].param);
		duo_run(name, broken);
		duo_params_keep(n);
	}
	if (only && !strstr("broken: one way", only))
		return;
	point = (struct inject_point){DIRECT(HOLD), 9, INJECT_BREAK, 0};
	for (int i = 0; i < 4; i++)
		duo_run("broken: one way", broken_one_way);
}

/* ---- with a full hold lane ---- */

/*
 * Messages without receives fill a hold lane, and the rest goes by RTS. They have arrived, but
 * their completions have not, because the link takes some milliseconds. No marker fits behind them
 * when the connection breaks.
 */
static void broken_when_full(struct duo *duo)
{
	enum { PASSES = 80, SENDS = 12 }; /* more than the sends that are timed; hold_depth is 8 */
	static unsigned char data[SMALL], more[SMALL];
	static struct duo_op ops[SENDS], last[2], waiting;
	struct tq_buf buf = {.addr = data, .len = SMALL};
	uint64_t direct;
	int rc;

	point = (struct inject_point){CONTROL(EAGER), 1, INJECT_BREAK, 0};
	for (int i = 0; i < PASSES; i++)
		duo_pass(duo, 1, data, SMALL, 0);
	duo_recv(duo, !duo->me, 2, more, SMALL, &waiting);
	for (int i = 0; i < SENDS && duo->me; i++)
		duo_recv(duo, 0, 1, data, SMALL, &ops[i]);
	duo_meet(duo);
	direct = duo_counter(duo, "sent_direct");
	for (int i = 0; i < SENDS && !duo->me; i++)
		duo_send(duo, 1, 1, data, SMALL, 0, &ops[i]);
	direct = duo_counter(duo, "sent_direct") - direct;
	t_true(duo->me || direct >= SENDS / 2, "%llu messages went direct",
	       (unsigned long long)direct);
	if (!duo->me)
		set_point(duo);
	/* The second send finds the queue pair in the error state. */
	for (int i = 0; i < 2 && !duo->me; i++) {
		rc = tq_send(duo->ctx, 1, 3, &buf, TQ_SEND_NO_QUEUE, &last[i], &last[i].req);
		t_true(rc >= 0 || rc == -EIO, "a send was refused: %d", rc);
	}
	duo_wait(duo, &waiting);
	t_true(waiting.status.error == -EIO, "the receive ended with %d", waiting.status.error);
	duo_meet(duo);
	duo_close(duo);
}

static void run_full(void)
{
	duo_param("hold_depth=8");
	duo_param("service_thread=0");
	duo_run("broken: with a full hold lane", broken_when_full);
}

/* ---- completion queues ---- */

/* No completion queue of process 0 works any more, and each operation ends nevertheless. */
static void check_nothing_goes(struct duo *duo, struct duo_op *waiting)
{
	static unsigned char anything[SMALL];
	struct tq_buf buf = {.addr = anything, .len = SMALL};
	struct tq_status status;
	struct duo_op op;

	duo_wait(duo, waiting);
	t_true(waiting->status.error == -EIO, "a receive from anybody ended with %d",
	       waiting->status.error);
	t_true(duo->errors == 1, "%u errors were logged", duo->errors);
	t_true(strstr(duo->error, "completion queue") && strstr(duo->error, "process 0"),
	       "the error doesn't say what failed: %s", duo->error);
	for (int rank = TQ_ANY_SOURCE; rank < 2; rank++) {
		t_true(tq_recv(duo->ctx, rank, 9, &buf, &op, &op.req, &op.status) == -EIO,
		       "a receive from %d is started", rank);
		t_true(tq_probe(duo->ctx, rank, 9, &status) == -EIO, "%d is probed", rank);
		t_true(rank < 0 || tq_send(duo->ctx, rank, 9, &buf, 0, &op, &op.req) == -EIO,
		       "a send to %d is started", rank);
	}
	t_true(tq_flush(duo->ep) == 0, "a failure was reported twice");
}

static void queue_broken(struct duo *duo)
{
	static unsigned char anything[SMALL];
	struct duo_op waiting;

	if (!duo->me) {
		duo_recv(duo, TQ_ANY_SOURCE, 10, anything, SMALL, &waiting);
		set_point(duo);
	}
	mix_until_failed(duo);
	if (duo->me)
		mix_check_failed(duo);
	else
		check_nothing_goes(duo, &waiting);
	duo_meet(duo);
	duo_close(duo);
}

static const struct {
	const char *name;
	struct inject_point point;
	const char *param;
} queues[] = {
	{"in the beginning", {CONTROL(EAGER), 1, INJECT_POLL_FAILS, 0}, NULL},
	{"amid control messages", {CONTROL(EAGER), 5, INJECT_POLL_FAILS, 0}, NULL},
	{"amid a read", {INJECT_READ, 0, 3, INJECT_POLL_FAILS, 0}, NULL},
	{"amid a write", {INJECT_WRITE, 0, 3, INJECT_POLL_FAILS, 0}, "rendezvous=rput"},
	{"amid direct messages", {DIRECT(HOLD), 20, INJECT_POLL_FAILS, 0}, NULL},
	{"at the fence", {CONTROL(RECALL), 1, INJECT_POLL_FAILS, 0}, NULL},
	{"amid what CTS_DIRECT granted", {DIRECT(BULK), 1, INJECT_POLL_FAILS, 0}, "hold_lanes=1"},
	{"without the thread", {DIRECT(HOLD), 9, INJECT_POLL_FAILS, 0}, "service_thread=0"},
	{"an event says so", {CONTROL(EAGER), 5, INJECT_CQ_ERROR, 0}, NULL},
	{"an event says so, amid a read", {INJECT_READ, 0, 3, INJECT_CQ_ERROR, 0}, NULL},
	{"an event says so, with direct messages",
	 {DIRECT(HOLD), 20, INJECT_CQ_ERROR, 0},
	 "service_thread=0"},
};

static void run_queues(const char *only)
{
	int n = duo_param("rdma_chunk=64K");
	char name[100];

	for (unsigned i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		snprintf(name, sizeof(name), "the completion queues break %s", queues[i].name);
		if (only && !strstr(name, only))
			continue;
		point = queues[i].point;
		if (queues[i].param)
			duo_param(queues[i].param);
		duo_run(name, queue_broken);
		duo_params_keep(n);
	}
}

/* ---- datagrams ---- */

static void with_datagrams_lost(struct duo *duo)
{
	inject_datagrams(2 * seed + (unsigned)duo->me, 50, 0, 0);
	for (unsigned i = 0; i < 12; i++)
		t_true(mix_round(duo, i), "it failed");
}

static void with_datagrams_mixed_up(struct duo *duo)
{
	inject_datagrams(2 * seed + (unsigned)duo->me, 10, 30, 40);
	for (unsigned i = 0; i < 12; i++)
		t_true(mix_round(duo, i), "it failed");
}

static void run_datagrams(void)
{
	for (seed = 1; seed <= 4; seed++) {
		duo_run("half of the datagrams lost", with_datagrams_lost);
		duo_run("datagrams lost, doubled and late", with_datagrams_mixed_up);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *only = NULL;

	/* Parameters by which all kinds of messages, and the notice of a failure, come soon. With 1
	 * short messages would ask for no queue. */
	duo_param("promote_after=0");
	duo_param("giveback_after=0");
	duo_param("wild_backoff=1");
	duo_param("timeout=10");
	duo_param("keepalive=100");
	for (int i = 2; i < argc; i++) {
		if (strchr(argv[i], '='))
			duo_param(argv[i]);
		else if (argv[i][0] >= '0' && argv[i][0] <= '9')
			seed = (unsigned)atoi(argv[i]);
		else
			only = argv[i];
	}
	inject_init();
	if (!strcmp(what, "killed"))
		run_kills(only);
	else if (!strcmp(what, "broken"))
		run_breaks(only);
	else if (!strcmp(what, "full"))
		run_full();
	else if (!strcmp(what, "queues"))
		run_queues(only);
	else if (!strcmp(what, "random"))
		run_random(RANDOM_RUNS);
	else if (!strcmp(what, "datagrams"))
		run_datagrams();
	else
		duo_result("arguments", "killed, broken, full, queues, random or datagrams");
	return duo_failed() != 0;
}
