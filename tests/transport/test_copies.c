/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages within a node, which are copied from the memory of their senders. B is endpoint 0
 * and A endpoint 1, both on one node.
 *
 * test_copies [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../forbid.h"
#include "many.h"
#include "net/adapter/address.h"
#include "net/adapter/ring.h"
#include "net/peers/link.h"

#define LEN  ((size_t)100000)
#define LONG ((size_t)3 << 20)

static const char *const automatic[] = {"intranode=auto", NULL};
static const char *const shm[] = {"intranode=shm", NULL};

static char *from, *to; /* buffers of LONG bytes */

/* Opens both endpoints, with connections both ways. */
static void start(const char *const *params, struct tq_ctx *ctx[2])
{
	from = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = malloc(LONG);
	t_true(from != MAP_FAILED && to, "no memory");
	for (size_t i = 0; i < LONG; i++)
		from[i] = (char)(i * 7 + i / 4096);
	many_start_together(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[1], ctx[0], 1, 0);
}

static struct tq_rings *inbox_of(int ep)
{
	size_t len;

	return many_inbox(ep, &len);
}

static void post_send(struct tq_ctx *ctx, size_t len, struct many_op *op)
{
	struct tq_buf buf = {.addr = from, .len = len};
	int rc;

	*op = (struct many_op){0};
	rc = tq_send(ctx, 1, MANY_TAG, &buf, 0, op, &op->req);
	t_true(rc == 0, "send: %d", rc);
}

/* Checks that both ends of a message end, and that the data have come. */
static void comes(const struct many_op *sent, const struct many_op *got, size_t len)
{
	t_true(many_comes(got) && !got->status.error && got->status.length == len,
	       "it ended with %d, %zu bytes", got->status.error, (size_t)got->status.length);
	t_true(many_comes(sent) && !sent->status.error, "the send ended with %d",
	       sent->status.error);
	t_true(!memcmp(from, to, len), "other data came");
}

/* Sends a message from B to A, whose receive is posted before or after. */
static void pass(struct tq_ctx *const ctx[2], size_t len, bool early)
{
	struct many_op sent, got;

	memset(to, 0, len);
	if (early) {
		post_send(ctx[0], len, &sent);
		many_spin(10);
	}
	many_recv_long(ctx[1], 0, MANY_TAG, to, len, &got);
	if (!early)
		post_send(ctx[0], len, &sent);
	comes(&sent, &got, len);
}

/* The receiver copies, with neither end's memory registered. */
static void by_receiver(void)
{
	struct tq_ctx *ctx[2];

	start(automatic, ctx);
	pass(ctx, LEN, false);
	pass(ctx, LEN, true);
	t_true(many_counter(1, "recv_copied") == 2 &&
		       many_counter(1, "recv_copied_bytes") == 2 * LEN,
	       "%d were copied", (int)many_counter(1, "recv_copied"));
	t_true(!many_high(0, "registered") && !many_high(1, "registered"), "memory was registered");
}

/* A copy is made in parts, between which others have the lock. */
static void in_parts(void)
{
	struct tq_ctx *ctx[2];
	struct many_op sent, got;
	char data[64];

	start(shm, ctx);
	post_send(ctx[0], LONG, &sent);
	many_spin(10);
	many_recv_long(ctx[1], 0, MANY_TAG, to, LONG, &got);
	t_true(!got.ended && !memcmp(from, to, 1 << 20) && to[(2 << 20) + 1] != from[(2 << 20) + 1],
	       "all was copied at once");
	comes(&sent, &got, LONG);
	many_send(ctx[0], 1, MANY_TAG, "behind it", 0, &sent);
	many_recv(ctx[1], 0, MANY_TAG, data, &got);
	t_true(many_comes(&got) && !strcmp(data, "behind it"), "the next message is wrong");
	t_true(many_counter(1, "recv_copied") == 1 && !many_counter(1, "recv_direct"),
	       "it came another way");
}

/* With tq_thread_progress() the service thread makes the parts that a thread of the user's has
 * left, while nobody else makes progress. */
static void by_thread(void)
{
	static const char *const params[] = {"intranode=shm", "service_thread=1", NULL};
	struct tq_ctx *ctx[2];
	struct many_op sent, got;

	start(params, ctx);
	post_send(ctx[0], LONG, &sent);
	many_spin(10);
	t_ok(tq_thread_progress(many_eps[1], TQ_THREAD_ALL));
	/* So long that the thread sleeps when the receive is posted. */
	usleep(50000);
	many_recv_long(ctx[1], 0, MANY_TAG, to, LONG, &got);
	for (time_t end = time(NULL) + many_deadline;
	     !__atomic_load_n(&got.ended, __ATOMIC_ACQUIRE) && time(NULL) < end;)
		usleep(100);
	t_ok(tq_thread_progress(many_eps[1], TQ_THREAD_OWN));
	comes(&sent, &got, LONG);
}

/* With `auto` only long messages request a queue, and go through the adapter. */
static void long_to_queues(void)
{
	struct tq_ctx *ctx[2];

	start(automatic, ctx);
	for (int i = 0; i < 10; i++)
		pass(ctx, LEN, false);
	t_true(!many_counter(1, "promotions") && many_counter(1, "recv_copied") == 10,
	       "messages of %zu bytes have a queue", LEN);
	for (int i = 0; i < 10; i++)
		pass(ctx, LONG, false);
	t_true(many_counter(1, "promotions") == 1 && many_counter(1, "recv_direct"),
	       "messages of %zu bytes have no queue", LONG);
	t_true(many_counter(1, "recv_copied") == 10, "long ones were copied");
}

/* ---- copies that can't be made ---- */

/* Without the right to read the adapter is used in `auto`, and pieces with `shm`. */
static void without_right(void)
{
	struct tq_ctx *ctx[2];

	t_forbid(SYS_process_vm_readv, EPERM);
	start(automatic, ctx);
	pass(ctx, LEN, false);
	pass(ctx, LEN, true);
	t_true(many_counter(1, "recv_rget") == 2 && many_counter(1, "copies_refused") == 1,
	       "%d came by RDMA read", (int)many_counter(1, "recv_rget"));
}

static void in_pieces(void)
{
	struct tq_ctx *ctx[2];

	t_forbid(SYS_process_vm_readv, EPERM);
	start(shm, ctx);
	pass(ctx, LEN, false);
	pass(ctx, LONG, true);
	t_true(many_counter(1, "recv_pipelined") == 2 && many_counter(0, "sent_ring_bytes") > LONG,
	       "%d came in pieces", (int)many_counter(1, "recv_pipelined"));
	t_true(!many_high(0, "registered") && !many_high(1, "registered"), "memory was registered");
}

/* The right may go while the processes know each other. */
static void right_goes(void)
{
	struct tq_ctx *ctx[2];

	start(automatic, ctx);
	pass(ctx, LEN, false);
	t_forbid(SYS_process_vm_readv, EPERM);
	pass(ctx, LEN, false);
	pass(ctx, LEN, true);
	t_true(many_counter(1, "recv_copied") == 1 && many_counter(1, "copies_failed") == 1 &&
		       many_counter(1, "copies_refused") == 1,
	       "%d were copied", (int)many_counter(1, "recv_copied"));
}

/* Begins as start(), but changes B's description of itself before A reads it. */
static void start_wrong(void (*change)(struct tq_rings *rings), struct tq_ctx *ctx[2])
{
	struct many_op got;
	char data[64];

	from = to = NULL;
	many_open(2, false, automatic);
	change(inbox_of(0));
	many_know_all();
	many_context(1, 2, ctx);
	from = calloc(1, LONG);
	to = malloc(LONG);
	many_recv(ctx[1], 0, MANY_TAG, data, &got);
	memset(from, 'x', LONG);
	many_send(ctx[0], 1, MANY_TAG, "first", 0, &(struct many_op){0});
	t_true(many_comes(&got), "the first message is lost");
}

static void to_process_1(struct tq_rings *rings)
{
	rings->pid = 1;
}

static void to_group(struct tq_rings *rings)
{
	rings->pid = 0;
}

static void to_nobody(struct tq_rings *rings)
{
	rings->pid = UINT32_MAX;
}

static void to_other_proof(struct tq_rings *rings)
{
	rings->proof = (uintptr_t)&many_deadline;
}

static void wrong(void (*change)(struct tq_rings *rings))
{
	struct tq_ctx *ctx[2];

	start_wrong(change, ctx);
	pass(ctx, LEN, false);
	t_true(!many_counter(1, "recv_copied") && many_counter(1, "copies_refused") == 1,
	       "it was copied");
}

/* A process id that another process has here is not believed. */
static void other_process(void)
{
	wrong(to_process_1);
}

static void no_process(void)
{
	wrong(to_group);
}

static void negative_process(void)
{
	wrong(to_nobody);
}

static void other_proof(void)
{
	wrong(to_other_proof);
}

/* Memory of which a part can't be read comes another way. */
static void unreadable(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[2];

	start(automatic, ctx);
	pass(ctx, LEN, false);
	memset(to, 0, LEN);
	post_send(ctx[0], LEN, &sent);
	many_spin(10);
	t_true(!mprotect(from + 65536, 4096, PROT_NONE), "mprotect: %s", strerror(errno));
	many_recv_long(ctx[1], 0, MANY_TAG, to, LEN, &got);
	t_true(many_counter(1, "copies_failed") == 1, "the copy didn't fail");
	mprotect(from + 65536, 4096, PROT_READ | PROT_WRITE);
	comes(&sent, &got, LEN);
	t_true(many_counter(1, "recv_rput") == 1, "it came another way");
	pass(ctx, LEN, false);
	t_true(many_counter(1, "recv_copied") == 2, "the next one is not copied");
}

/* A copy from a sender whose link had failed is not believed. */
static void after_cut(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[2];

	start(automatic, ctx);
	post_send(ctx[0], LEN, &sent);
	many_spin(10);
	many_ring(inbox_of(1), 0)->cut = 1;
	many_recv_long(ctx[1], 0, MANY_TAG, to, LEN, &got);
	t_true(!got.ended && many_counter(1, "copies_failed") == 1, "the copy is believed");
	comes(&sent, &got, LEN);
}

/* A link that fails is cut before its sends end. */
static void cuts(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	struct tq_ring *ring;

	start(automatic, ctx);
	post_send(ctx[0], LEN, &sent);
	many_recv_long(ctx[0], 1, MANY_TAG, to, LEN, &got);
	ring = many_ring(inbox_of(1), 0);
	t_true(!ring->cut, "it is cut from the beginning");
	/* A writes something that is no message. */
	many_ring(inbox_of(0), 0)->bytes[many_ring(inbox_of(0), 0)->read] = 1;
	inbox_of(0)->ready[0] = 1;
	MANY_UNTIL(sent.ended, tq_progress(many_eps[0]));
	t_true(sent.ended && sent.status.error && ring->cut, "the send ended with %d, cut %d",
	       sent.status.error, (int)ring->cut);
}

const struct many_case many_cases[] = {
	{"by the receiver", by_receiver},
	{"in parts", in_parts},
	{"by the service thread", by_thread},
	{"long ones to queues", long_to_queues},
	{"without the right", without_right},
	{"in pieces", in_pieces},
	{"the right goes", right_goes},
	{"of another process", other_process},
	{"of no process", no_process},
	{"of a negative process", negative_process},
	{"without its proof", other_proof},
	{"unreadable memory", unreadable},
	{"after the cut", after_cut},
	{"cuts", cuts},
	{NULL, NULL},
};
