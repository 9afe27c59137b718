/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Effects of a death or a broken connection on other processes. B is endpoint 0, A endpoint 1 and
 * A2 endpoint 2.
 *
 * test_lost [NAME], under "softhca run --nodes 1"
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "many.h"
#include "net/channel/bank.h"
#include "net/lanes/lane.h"
#include "net/peers/link.h"
#include "proto/common/objects.h"

#define LONG 65536

/* Called once, before the next SRQ is destroyed. */
static void (*before_destroyed)(void);

int ibv_destroy_srq(struct ibv_srq *srq)
{
	static int (*next)(struct ibv_srq * srq);
	void (*fn)(void) = before_destroyed;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_destroy_srq");
	before_destroyed = NULL;
	if (fn)
		fn();
	return next(srq);
}

/* Has an endpoint behave as if its process had died: the endpoint refuses messages. */
static void dies(int ep)
{
	struct tq_bank *bank = many_eps[ep]->net.banks->all;

	t_true(ep == many_neps - 1, "not the last one");
	many_neps--;
	for (int cls = 0; cls < TQ_CLASSES; cls++)
		t_true(!ibv_destroy_srq(bank->srq[cls]), "an SRQ stays");
}

enum { AHEAD = 100 };

/*
 * Messages to another process of the node come in their order, although they were posted behind a
 * refused one.
 */
static void messages_behind(const char *const *params, bool left)
{
	static const char *const words[] = {"one", "two", "three"};
	struct many_op sent, got[3];
	struct tq_ctx *ctx[3];
	char data[3][64];

	many_start_together(3, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[0], ctx[2], 0, 2);
	many_sleep(20);
	/* Completions in front of that of the message that fails. */
	for (int i = 0; left && i < AHEAD; i++)
		many_send(ctx[0], 1, MANY_TAG + 1, "ahead", 0, &sent);
	dies(2);
	many_send(ctx[0], 2, MANY_TAG, "to one who died", 0, &sent);
	for (int i = 0; i < 3; i++)
		many_send(ctx[0], 1, MANY_TAG, words[i], 0, &sent);
	for (int i = 0; i < 3; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data[i], &got[i]);
		if (left)
			MANY_UNTIL(got[i].ended, tq_progress(many_eps[1]));
		else
			many_comes(&got[i]);
		t_true(got[i].ended && !got[i].status.error, "\"%s\" didn't come", words[i]);
		t_true(!strcmp(data[i], words[i]), "not \"%s\" came, but \"%s\"", words[i],
		       data[i]);
	}
}

static void mate_dies(void)
{
	static const char *const params[] = {"protocol=rget", NULL};

	messages_behind(params, false);
}

/* B's sends have ended, and B calls the library no more. */
static void mate_dies_and_sender_leaves(void)
{
	static const char *const params[] = {"protocol=rget", "service_thread=1", NULL};

	messages_behind(params, true);
}

/* B reads a long message of rank 1 and one of rank 2. If not `alive`, rank 2 dies before that. */
static void read_long(struct tq_ctx *const *ctx, bool alive)
{
	static char from[2][LONG], to[2][LONG];
	struct many_op sent[2] = {0}, got[2] = {0};

	for (int i = 0; i < 2; i++) {
		struct tq_buf buf = {.addr = from[i], .len = LONG};

		memset(from[i], 'a' + i, LONG);
		memset(to[i], 0, LONG);
		t_true(!tq_send(ctx[1 + i], 0, MANY_TAG, &buf, 0, &sent[i], &sent[i].req),
		       "a long message has ended at once");
	}
	many_spin(1000);
	if (!alive)
		dies(2);
	for (int i = 1; i >= 0; i--) {
		struct tq_buf buf = {.addr = to[i], .len = LONG};

		t_true(!tq_recv(ctx[0], 1 + i, MANY_TAG, &buf, &got[i], &got[i].req,
				&got[i].status),
		       "a long message is here at once");
	}
	t_true(many_comes(&got[1]) && !got[1].status.error == alive,
	       "the read from rank 2 ended with %d", got[1].status.error);
	t_true(many_comes(&got[0]) && !got[0].status.error && to[0][LONG - 1] == 'a',
	       "the message of rank 1 wasn't read");
}

/* A read that was posted behind a refused one is repeated. */
static void mate_dies_before_read(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	struct tq_ctx *ctx[3];

	many_start_together(3, params, ctx);
	read_long(ctx, true);
	read_long(ctx, false);
}

/* A receive of a message whose data are lost ends when the log has said why. */
static void received_before_it_is_known(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	static char from[LONG], to[LONG];
	const struct tq_buf out = {.addr = from, .len = LONG}, in = {.addr = to, .len = LONG};
	struct many_op sent = {0}, other, got = {0};
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	t_true(!tq_send(ctx[1], 0, MANY_TAG, &out, 0, &sent, &sent.req), "no send");
	many_spin(1000);
	dies(1);
	many_send(ctx[0], 1, MANY_TAG, "to one who died", 0, &other);
	MANY_UNTIL(tq_link_has_failed(many_peers[0][1]->link), tq_progress(many_eps[0]));
	t_true(!many_errors, "the loss is known already");
	t_true(tq_recv(ctx[0], 1, MANY_TAG, &in, &got, &got.req, &got.status) == 1,
	       "the receive has not ended");
	t_true(got.status.error == -EIO, "the receive ended with %d", got.status.error);
	t_true(many_errors == 1, "the log doesn't say what failed");
}

/* A message that is held for a process that has died does not wait for ever. */
static void held_for_a_dead_peer(void)
{
	static const char *const params[] = {"promote_after=0", "giveback_after=0", NULL};
	struct many_op held, sent;
	struct tq_ctx *ctx[2];
	uint64_t direct;

	many_start_apart(2, params, ctx);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	direct = many_counter(0, "sent_direct");
	many_send(ctx[0], 1, MANY_TAG, "held", TQ_SEND_SYNC, &held);
	t_true(many_counter(0, "sent_direct") == direct + 1, "it isn't held");
	dies(1);
	many_send(ctx[0], 1, MANY_TAG + 1, "to one who died", TQ_SEND_NO_QUEUE, &sent);
	t_true(many_comes(&held) && held.status.error == -EIO, "the send ended with %d",
	       held.status.error);
}

/* B can't see the file of another node, so it asks A whether A2 of the same node has died. */
static void mate_is_asked(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	static const int nodes[] = {0, 1, 1};
	struct many_op sent, got;
	struct tq_ctx *ctx[3];
	char data[64];

	many_start_on(3, nodes, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[0], ctx[2], 0, 2);
	many_recv(ctx[0], 2, MANY_TAG, data, &got);
	dies(2);
	/* This removes the mark by which processes of the node see that A2 is alive. */
	t_true(!close(many_eps[2]->net.xrcd_fd), "the file is closed");
	many_send(ctx[0], 2, MANY_TAG, "to one who died", 0, &sent);
	t_true(many_comes(&got) && got.status.error == -EIO, "the receive ended with %d",
	       got.status.error);
	t_true(!strncmp(many_error, "A2 has died", strlen("A2 has died")),
	       "what is said of it is: %s", many_error);
	t_true(many_counter(0, "deaths") == 1, "it isn't counted");
}

/*
 * A death that no process can confirm is only called probable, because its node has no other
 * process and a NAK proves nothing.
 */
static void nobody_knows(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	char data[64];

	many_needs_lanes();
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_recv(ctx[0], 1, MANY_TAG, data, &got);
	dies(1);
	many_send(ctx[0], 1, MANY_TAG, "to one who died", 0, &sent);
	t_true(many_comes(&got) && got.status.error == -EIO, "the receive ended with %d",
	       got.status.error);
	t_true(strstr(many_error, "connection to A failed: ") &&
		       strstr(many_error, "has probably died"),
	       "what is said of it is: %s", many_error);
	t_true(many_counter(0, "deaths") == 0, "it is counted");
}

/*
 * While it is unknown why one process failed, sends to others end. Operations with the failed
 * process do not end yet.
 */
static void others_go_on(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	struct many_op lost, sent, got;
	const struct tq_link *dead;
	struct tq_ctx *ctx[3];
	char data[2][64];

	many_start_apart(3, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[0], ctx[2], 0, 2);
	many_recv(ctx[0], 2, MANY_TAG, data[0], &lost);
	dead = many_peers[0][2]->link;
	dies(2);
	many_send(ctx[0], 2, MANY_TAG, "to one who died", 0, &sent);
	MANY_UNTIL(tq_link_has_failed(dead), many_spin(1));
	t_true(tq_link_has_failed(dead), "the connection doesn't fail");
	dead->contact->fate_until = UINT64_MAX;
	many_recv(ctx[1], 0, MANY_TAG + 1, data[1], &got);
	many_send(ctx[0], 1, MANY_TAG + 1, "to another", TQ_SEND_SYNC, &sent);
	t_true(many_comes(&sent) && !sent.status.error, "the send ended with %d",
	       sent.status.error);
	t_true(dead->contact->fate == TQ_FATE_INQUIRED && !many_errors, "it is known: %s",
	       many_error);
	t_true(!lost.ended, "a receive from the one that failed ended before it is known why");
	dead->contact->fate_until = 0;
	t_true(many_comes(&lost) && lost.status.error == -EIO, "the receive ended with %d",
	       lost.status.error);
}

/*
 * An operation with a process that has failed ends after the log has said why, although
 * B's protocol, which can't answer a message, has failed the process before that.
 */
static void sends_before_it_is_known(void)
{
	static const char *const params[] = {"protocol=rput", NULL};
	static char in[100000], out[100000];
	struct tq_buf buf = {.addr = out, .len = sizeof(out)};
	struct many_op answered, sent = {0};
	struct tq_ctx *ctx[3];
	struct tq_link *dead;

	many_start_apart(3, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[0], ctx[2], 0, 2);
	dead = many_peers[0][2]->link;
	t_true(tq_send(ctx[2], 0, MANY_TAG + 1, &buf, TQ_SEND_SYNC, &sent, &sent.req) == 0,
	       "it isn't sent");
	MANY_UNTIL(many_counter(0, "unexpected"), many_spin(1));
	dies(2);
	many_send(ctx[0], 2, MANY_TAG, "to one who died", 0, &sent);
	MANY_UNTIL(tq_link_has_failed(dead), many_spin(1));
	dead->contact->fate_until = tq_now() + 500 * TQ_MS;
	many_recv_long(ctx[0], 2, MANY_TAG + 1, in, sizeof(in), &answered);
	MANY_UNTIL(many_peers[0][2]->failed, many_spin(1));
	t_true(dead->contact->fate == TQ_FATE_INQUIRED && !many_errors, "it is known: %s",
	       many_error);
	t_true(tq_peer_error(many_peers[0][2]) == 0, "the peer is gone before it is known why");
	t_true(tq_send(ctx[0], 2, MANY_TAG, &buf, 0, &sent, &sent.req) == -EIO, "it is sent");
	t_true(many_errors, "the send ended before it is known why");
	t_true(tq_peer_error(many_peers[0][2]) == -EIO, "the peer is not gone");
	t_true(many_comes(&answered) && answered.status.error == -EIO, "the receive ended with %d",
	       answered.status.error);
}

/*
 * If the file with the marks can't be read, a process from which a message is expected is not taken
 * for dead.
 */
static void mark_unseen(void)
{
	static const char *const params[] = {"keepalive=1", NULL};
	struct tq_net *net;
	struct tq_ctx *ctx[2];
	struct many_op sent, got;
	char data[64];
	uint64_t due;
	int fd;

	many_start_together(2, params, ctx);
	net = &many_eps[0]->net;
	many_recv(ctx[0], 1, MANY_TAG, data, &got);
	fd = net->xrcd_fd;
	net->xrcd_fd = -1;
	due = net->connections->check_due;
	MANY_UNTIL(net->connections->check_due != due, many_spin(64));
	t_true(net->connections->check_due != due, "the peers are not checked");
	net->xrcd_fd = fd;
	many_send(ctx[1], 0, MANY_TAG, "still there", 0, &sent);
	t_true(many_comes(&got) && !got.status.error, "the receive ended with %d: %s",
	       got.status.error, many_error);
	t_true(!many_errors, "it is said: %s", many_error);
}

/* Checks how often a request for a connection was repeated: at 5 ms, then each time after twice as
 * long. */
static void is_repeated(uint64_t times, uint64_t before, uint64_t since)
{
	uint64_t least = 5 * TQ_MS * ((UINT64_C(1) << (times < 7 ? times : 7)) - 1);

	t_true(times <= before + 1, "%llu copies were sent at once",
	       (unsigned long long)(times - before));
	t_true(tq_now() - since >= least, "copy number %llu was sent early",
	       (unsigned long long)times);
}

/* A process is there, but never makes progress to answer. */
static void never_answers(void)
{
	static const char *const params[] = {"connect_timeout=1", "service_thread=0", NULL};
	uint64_t times = 0, before, since;
	struct tq_ctx *ctx[2];
	struct tq_link *link;
	struct many_op sent;

	many_needs_lanes();
	many_start_apart(2, params, ctx);
	many_neps = 1;
	link = many_peers[0][1]->link;
	t_true(link->state[TQ_HERE] == TQ_LINK_NEW, "it is connected already");
	since = tq_now();
	many_send(ctx[0], 1, MANY_TAG, "to one who is away", TQ_SEND_SYNC, &sent);
	t_true(link->state[TQ_HERE] == TQ_LINK_CONNECTING, "no connection is asked for");
	for (time_t end = time(NULL) + many_deadline; !sent.ended && time(NULL) < end;) {
		tq_progress(many_eps[0]);
		before = times;
		times = many_counter(0, "connect_retries");
		is_repeated(times, before, since);
	}
	t_true(sent.ended && sent.status.error == -EIO, "the send ended with %d",
	       sent.status.error);
	t_true(times >= 4, "it was repeated %llu times", (unsigned long long)times);
	t_true(strstr(many_error, "A has not answered") && strstr(many_error, "may have died"),
	       "what is said of it is: %s", many_error);
}

/*
 * A process gives B up before B has added the process as a peer. The failure is no news when B does
 * so: a receive from the process ends with an error all the same.
 */
static void added_after_failure(void)
{
	static const char *const params[] = {"connect_timeout=1", NULL};
	char data[64];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct many_op sent, got = {0};
	struct tq_ctx *ctx[2];
	int rc;

	many_needs_lanes();
	many_open(2, true, params);
	for (int j = 0; j < 2; j++)
		many_know(1, j);
	many_context_at(1, 1, 2, ctx);
	many_send(ctx[1], 0, MANY_TAG, "to one who is away", TQ_SEND_SYNC, &sent);
	MANY_UNTIL(sent.ended, tq_progress(many_eps[1]));
	t_true(sent.ended && sent.status.error == -EIO, "the send ended with %d",
	       sent.status.error);
	MANY_UNTIL(strstr(many_error, "has cut the connection"), many_spin(1));
	t_true(strstr(many_error, "a process that is not a peer yet has cut the connection"),
	       "what is said of it is: %s", many_error);
	for (int j = 0; j < 2; j++)
		many_know(0, j);
	t_true(tq_peer_error(many_peers[0][1]) == -EIO, "the peer is not gone");
	t_true(!strcmp(many_error,
		       "The connection to A failed before that process was added as a peer."),
	       "what is said of the peer is: %s", many_error);
	many_context_at(0, 1, 2, ctx);
	rc = tq_recv(ctx[0], 1, MANY_TAG, &buf, &got, &got.req, &got.status);
	t_true(rc == -EIO || (!rc && many_comes(&got) && got.status.error == -EIO),
	       "the receive began with %d and ended with %d", rc, got.status.error);
}

static struct tq_ctx *ctxs[3];
static struct many_op meanwhile;

/* B, which has not been told of the failure, sends a direct message, which is delivered. */
static void comes_meanwhile(void)
{
	uint64_t direct = many_counter(0, "sent_direct");

	many_send(ctxs[0], 1, MANY_TAG, "meanwhile", TQ_SEND_SYNC, &meanwhile);
	t_true(many_counter(0, "sent_direct") == direct + 1, "it isn't sent to the SRQ");
	MANY_UNTIL(meanwhile.ended, tq_progress(many_eps[0]));
	t_true(meanwhile.ended && !meanwhile.status.error, "it isn't delivered");
}

/*
 * A's connection to B fails in A's direction only. A message that B sends while A destroys the
 * tuple's SRQ does no harm to the connections with others.
 */
static void sends_to_destroyed(void)
{
	static const char *const params[] = {"promote_after=0", "giveback_after=0", NULL};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct many_op got[4], sent;
	const struct tq_link *broken;
	static char data[4][64];

	many_needs_lanes();
	many_start_apart(3, params, ctxs);
	for (int i = 0; i < 10; i++)
		many_pass(ctxs[0], ctxs[1], 0, 1);
	many_pass(ctxs[1], ctxs[0], 1, 0);
	many_pass(ctxs[2], ctxs[1], 2, 1);
	for (int i = 0; i < 4; i++)
		many_recv(ctxs[1], 0, MANY_TAG, data[i], &got[i]);
	many_spin(300);
	broken = many_peers[1][0]->link;
	t_true(!ibv_modify_qp(broken->ready[TQ_LANE_CONTROL]->qp, &attr, IBV_QP_STATE),
	       "the lane stays");
	before_destroyed = comes_meanwhile;
	many_send(ctxs[1], 0, MANY_TAG, "by a broken lane", 0, &sent);
	MANY_UNTIL(!before_destroyed, tq_progress(many_eps[1]));
	t_true(meanwhile.ended, "the SRQ was not destroyed");
	for (int i = 0; i < 4; i++)
		t_true(many_comes(&got[i]), "receive %d doesn't end", i);
	for (int i = 0; i < 10; i++)
		many_pass(ctxs[2], ctxs[1], 2, 1);
}

const struct many_case many_cases[] = {
	{"a mate dies", mate_dies},
	{"a mate dies, and the sender has left", mate_dies_and_sender_leaves},
	{"a mate dies before a read", mate_dies_before_read},
	{"a mate is asked whether one died", mate_is_asked},
	{"nobody knows whether one died", nobody_knows},
	{"others go on until it is known", others_go_on},
	{"a send waits until it is known", sends_before_it_is_known},
	{"a mark that can't be seen", mark_unseen},
	{"one who never answers", never_answers},
	{"added after its failure", added_after_failure},
	{"received before it is known", received_before_it_is_known},
	{"held for one who died", held_for_a_dead_peer},
	{"a message to an SRQ that is destroyed", sends_to_destroyed},
	{0},
};
