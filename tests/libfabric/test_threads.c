/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of two processes on one endpoint (FI_THREAD_SAFE), and on one endpoint each: messages,
 * cancelled receives, one-sided and atomic operations, and objects that come and go meanwhile.
 * Whichever thread reads a completion hands it to the thread that waits for it. Each operation ends
 * exactly once, with the data, sums and old values that the test knows.
 *
 * test_threads NODES [ROUNDS], under "softhca run --nodes NODES"
 */
#include "member.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"

#define NPROCS  2
#define THREADS 4
#define CAPS    (MEMBER_ONE_SIDED | FI_TAGGED | FI_DIRECTED_RECV)
#define LONGEST 70000
/* The memory of a process has counters, then a slice for each thread of its peer. */
#define OLD_AT   0 /* the sum whose old values are fetched */
#define SUM_AT   8
#define SLICE    (MEMBER_BYTES / 8)
#define K_NAMES  MEMBER_KEY_FREE
#define NO_ROUND UINT32_C(0xffffff) /* of a tag that nobody sends */

static unsigned nodes[NPROCS];
static unsigned rounds = 150;

/* An endpoint of a process, and its peer. */
struct port {
	struct fid_ep *ep;
	struct fid_cq *tx, *rx;
	fi_addr_t peer;
};

struct shared {
	struct member member;
	struct port ports[THREADS]; /* of each thread; all alike if the threads share one */
	atomic_uint *seen;          /* how often each old value was fetched */
};

struct worker {
	struct shared *shared;
	struct port *port;
	unsigned index;
	uint64_t own;    /* random numbers of this thread */
	uint64_t common; /* those that its partner has, too */
	unsigned char *out, *in;
};

/* An operation under way; its context is its first member. */
struct op {
	struct fi_context context;
	atomic_bool pending;
	int error;
	size_t len;
};

/* ---- completions ---- */

static void begin(struct op *op)
{
	op->error = 0;
	op->len = 0;
	atomic_store(&op->pending, true);
}

static void end(void *context, int error, size_t len)
{
	struct op *op = context;

	t_holds(op);
	t_true(atomic_load(&op->pending), "an operation ended twice");
	op->error = error;
	op->len = len;
	atomic_store(&op->pending, false);
}

static void poll_cq(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entries[3];
	struct fi_cq_err_entry error = {0};
	ssize_t n = fi_cq_read(cq, entries, 3);

	for (ssize_t i = 0; i < n; i++)
		end(entries[i].op_context, 0, entries[i].len);
	/* Another thread may have read the error. */
	if (n == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		end(error.op_context, error.err, error.len);
}

static void poll_port(const struct port *port)
{
	poll_cq(port->tx);
	poll_cq(port->rx);
}

static int wait_for(const struct port *port, struct op *op)
{
	while (atomic_load(&op->pending))
		poll_port(port);
	return op->error;
}

/* Starts an operation again and again while it returns -FI_EAGAIN. */
#define start(port, call)                            \
	do {                                         \
		ssize_t rc_;                         \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			poll_port(port);             \
		t_eq(rc_, 0);                        \
	} while (0)

/* ---- what threads do ---- */

static size_t random_len(uint64_t *state)
{
	static const size_t sizes[] = {0, 1, 64, 5000, LONGEST};

	return sizes[t_random(state) % (sizeof(sizes) / sizeof(*sizes))];
}

static uint64_t tag_of(const struct worker *worker, unsigned round)
{
	return (uint64_t)worker->index << 32 | round;
}

static void post(struct worker *worker, size_t len, uint64_t tag, struct op *op)
{
	struct port *port = worker->port;
	bool any = t_random(&worker->own) % 2;

	begin(op);
	start(port, fi_trecv(port->ep, worker->in, len, NULL, any ? FI_ADDR_UNSPEC : port->peer,
			     tag, 0, op));
}

/* Cancels a receive that a message may take at the same time. Returns true if none has. */
static bool cancel(struct worker *worker, struct op *op)
{
	struct port *port = worker->port;
	ssize_t rc = fi_cancel(&port->ep->fid, op);
	int error = wait_for(port, op);

	t_true(error == 0 || error == FI_ECANCELED, "a cancelled receive ended with %d", error);
	t_true((rc == 0) == (error == FI_ECANCELED),
	       "fi_cancel() returned %zd, and the receive ended with %d", rc, error);
	return error;
}

/* Sends a message to the partner, and receives one of the same length. */
static void exchange(struct worker *worker, unsigned round)
{
	unsigned seed = worker->index * rounds + round, me = worker->shared->member.me;
	uint64_t tag = tag_of(worker, round);
	size_t len = random_len(&worker->common);
	struct port *port = worker->port;
	bool canceled = false;
	struct op recv, send;

	member_fill(worker->out, len, seed + me);
	post(worker, len, tag, &recv);
	begin(&send);
	start(port, fi_tsend(port->ep, worker->out, len, NULL, port->peer, tag, &send));
	if (t_random(&worker->own) % 4 == 0)
		canceled = cancel(worker, &recv);
	if (canceled)
		post(worker, len, tag, &recv);
	t_eq(wait_for(port, &recv), 0);
	t_eq(recv.len, len);
	member_check(worker->in, len, seed + 1 - me);
	t_eq(wait_for(port, &send), 0);
}

/* Nobody sends such a message. */
static void cancel_surely(struct worker *worker)
{
	struct op recv;

	post(worker, 8, tag_of(worker, NO_ROUND), &recv);
	t_holds(cancel(worker, &recv));
}

/* Writes to this thread's slice of the peer's memory, and reads it back. */
static void write_and_read(struct worker *worker, unsigned round)
{
	const struct member *member = &worker->shared->member;
	unsigned peer = 1 - member->me;
	size_t len = random_len(&worker->own);
	uint64_t at = member->addrs[peer] + (worker->index + 1) * SLICE;
	struct port *port = worker->port;
	struct op op;

	member_fill(worker->out, len, round);
	memset(worker->in, 0, len);
	begin(&op);
	start(port,
	      fi_write(port->ep, worker->out, len, NULL, port->peer, at, member->keys[peer], &op));
	t_eq(wait_for(port, &op), 0);
	begin(&op);
	start(port,
	      fi_read(port->ep, worker->in, len, NULL, port->peer, at, member->keys[peer], &op));
	t_eq(wait_for(port, &op), 0);
	member_check(worker->in, len, round);
}

/* Adds 1 to two numbers of the peer. Each old value of the first one is there once. */
static void add(struct worker *worker)
{
	const struct member *member = &worker->shared->member;
	unsigned peer = 1 - member->me;
	struct port *port = worker->port;
	const uint64_t one = 1;
	uint64_t old = UINT64_MAX;
	struct op op;

	start(port, fi_inject_atomic(port->ep, &one, 1, port->peer, member->addrs[peer] + SUM_AT,
				     member->keys[peer], FI_UINT64, FI_SUM));
	begin(&op);
	start(port, fi_fetch_atomic(port->ep, &one, 1, NULL, &old, NULL, port->peer,
				    member->addrs[peer] + OLD_AT, member->keys[peer], FI_UINT64,
				    FI_SUM, &op));
	t_eq(wait_for(port, &op), 0);
	t_holds(old < THREADS * rounds);
	t_eq(atomic_fetch_add(&worker->shared->seen[old], 1), 0);
}

/* Opens and closes objects while others are in use: a registration, an endpoint with a receive,
 * and an entry of the address vector. */
static void come_and_go(struct worker *worker)
{
	const struct member *member = &worker->shared->member;
	uint64_t name[2];
	size_t len = sizeof(name);
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t self;
	struct op op;

	t_ok(fi_mr_reg(member->domain, worker->in, LONGEST, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	t_ok(fi_endpoint(member->domain, member->info, &ep, NULL));
	t_ok(fi_ep_bind(ep, &member->av->fid, 0));
	t_ok(fi_ep_bind(ep, &member->tx->fid, FI_TRANSMIT));
	t_ok(fi_ep_bind(ep, &member->rx->fid, FI_RECV));
	t_ok(fi_enable(ep));
	t_ok(fi_getname(&ep->fid, name, &len));
	t_eq(fi_av_insert(member->av, name, 1, &self, 0, NULL), 1);
	begin(&op);
	start(worker->port, fi_trecv(ep, worker->in, 8, NULL, self, 1, 0, &op));
	t_ok(fi_close(&ep->fid));
	t_holds(atomic_load(&op.pending)); /* no completion */
	t_ok(fi_av_remove(member->av, &self, 1, 0));
	t_ok(fi_close(&mr->fid));
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	for (unsigned round = 0; round < rounds; round++) {
		exchange(worker, round);
		add(worker);
		switch (t_random(&worker->own) % 8) {
		case 0:
		case 1:
		case 2:
			write_and_read(worker, round);
			break;
		case 3:
		case 4:
			cancel_surely(worker);
			break;
		case 5:
			come_and_go(worker);
			break;
		}
	}
	return NULL;
}

/* ---- threads ---- */

static void run_workers(struct shared *shared)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.shared = shared,
			.port = &shared->ports[i],
			.index = i,
			.own = i * NPROCS + shared->member.me,
			.common = i,
			.out = malloc(LONGEST),
			.in = malloc(LONGEST),
		};
		t_holds(workers[i].out && workers[i].in);
		t_ok(pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (unsigned i = 0; i < THREADS; i++) {
		t_ok(pthread_join(threads[i], NULL));
		free(workers[i].out);
		free(workers[i].in);
	}
}

/* Opens an endpoint and its queues, and tells the partner its name. */
static void open_port(const struct member *member, struct port *port, unsigned index)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	uint64_t name[2];
	size_t len = sizeof(name);

	t_ok(fi_cq_open(member->domain, &cq, &port->tx, NULL));
	t_ok(fi_cq_open(member->domain, &cq, &port->rx, NULL));
	t_ok(fi_endpoint(member->domain, member->info, &port->ep, NULL));
	t_ok(fi_ep_bind(port->ep, &member->av->fid, 0));
	t_ok(fi_ep_bind(port->ep, &port->tx->fid, FI_TRANSMIT));
	t_ok(fi_ep_bind(port->ep, &port->rx->fid, FI_RECV));
	t_ok(fi_enable(port->ep));
	t_ok(fi_getname(&port->ep->fid, name, &len));
	procs_put(K_NAMES + 2 * index, name[0]);
	procs_put(K_NAMES + 2 * index + 1, name[1]);
	name[0] = procs_get(1 - member->me, K_NAMES + 2 * index);
	name[1] = procs_get(1 - member->me, K_NAMES + 2 * index + 1);
	t_eq(fi_av_insert(member->av, name, 1, &port->peer, 0, NULL), 1);
}

static void close_port(const struct port *port)
{
	t_ok(fi_close(&port->ep->fid));
	t_ok(fi_close(&port->rx->fid));
	t_ok(fi_close(&port->tx->fid));
}

/* Expects the sums of what the peer's threads have added. Injected parts may still be on their
 * way. */
static void check_sums(struct shared *shared)
{
	const struct member *member = &shared->member;
	const _Atomic(uint64_t) *old = (void *)(member->memory + OLD_AT);
	const _Atomic(uint64_t) *sum = (void *)(member->memory + SUM_AT);

	for (unsigned i = 0; i < THREADS * rounds; i++)
		t_eq(atomic_load(&shared->seen[i]), 1);
	procs_barrier();
	t_eq(atomic_load(old), THREADS * rounds);
	while (atomic_load(sum) < THREADS * rounds)
		poll_port(&shared->ports[0]);
	procs_barrier();
	t_eq(atomic_load(sum), THREADS * rounds);
}

static void part(unsigned me, void *arg)
{
	const bool own_endpoints = *(const bool *)arg;
	static struct shared shared;
	struct member *member = &shared.member;

	member_open_with(member, me, NPROCS, CAPS, 0);
	shared.seen = calloc(THREADS * rounds, sizeof(*shared.seen));
	t_holds(shared.seen);
	for (unsigned i = 0; i < THREADS; i++) {
		if (own_endpoints)
			open_port(member, &shared.ports[i], i);
		else
			shared.ports[i] = (struct port){member->ep, member->tx, member->rx,
							member->peers[1 - me]};
	}
	procs_barrier();
	run_workers(&shared);
	check_sums(&shared);
	member_silent(member);
	for (unsigned i = 0; i < THREADS && own_endpoints; i++)
		close_port(&shared.ports[i]);
	member_close(member);
	free(shared.seen);
}

static void one_endpoint(void **state)
{
	bool own_endpoints = false;

	(void)state;
	procs_run(NPROCS, nodes, part, &own_endpoints);
}

static void own_endpoints(void **state)
{
	bool own = true;

	(void)state;
	procs_run(NPROCS, nodes, part, &own);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_endpoint),
		cmocka_unit_test(own_endpoints),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	if (argc > 2)
		rounds = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
