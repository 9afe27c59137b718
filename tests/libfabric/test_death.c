/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that die, or close their objects, while others wait for something of them.
 *
 * test_death NODES, under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <unistd.h>

#define NPROCS   2
#define K_GO     MEMBER_KEY_FREE
#define RDM_CAPS (FI_MSG | FI_TAGGED)

static unsigned nodes[NPROCS];

/* Process 1: sends a message, says so, and waits for its death. */
static void send_and_wait(struct member *member)
{
	unsigned char byte = 0;

	member_start(member, fi_tinject(member->ep, &byte, 1, member->peers[0], 1));
	procs_put(K_GO, 1);
	for (;;)
		pause();
}

/* Runs a part, and kills process 1 when both have said that it may die. */
static void lose_one(void (*part)(unsigned me, void *arg))
{
	procs_start(NPROCS, nodes, part, NULL);
	procs_get(0, K_GO);
	procs_get(1, K_GO);
	procs_kill(1);
	procs_finish();
}

/* Process 1 dies: what process 0 waits for from it, and sends to it, ends with an error. */
static void death_part(unsigned me, void *arg)
{
	static unsigned char data[256 << 10], byte;
	struct fi_context receive, send, later;
	struct fi_cq_err_entry error;
	struct member member;

	(void)arg;
	member_open_with(&member, me, NPROCS, RDM_CAPS | FI_DIRECTED_RECV, 0);
	if (me == 1)
		send_and_wait(&member);
	member_start(&member, fi_trecv(member.ep, &byte, 1, NULL, member.peers[1], 1, 0, &receive));
	member_completion(member.rx, &receive);
	member_start(&member, fi_trecv(member.ep, &byte, 1, NULL, member.peers[1], 2, 0, &receive));
	member_start(&member,
		     fi_tsend(member.ep, data, sizeof(data), NULL, member.peers[1], 3, &send));
	procs_put(K_GO, 1);
	error = member_failure(member.rx, &receive);
	t_eq(error.err, FI_EIO);
	t_eq(error.flags & FI_RECV, FI_RECV);
	t_eq(member_error(member.tx, &send), FI_EIO);
	member_start(&member, fi_tsend(member.ep, data, 8, NULL, member.peers[1], 3, &later));
	t_eq(member_error(member.tx, &later), FI_EIO);
	t_eq(fi_trecv(member.ep, &byte, 1, NULL, member.peers[1], 2, 0, &later), -FI_EIO);
	t_true(fi_tinject(member.ep, data, 8, member.peers[1], 3) == -FI_EIO,
	       "an injected message to a dead process was taken");
	member_close_alone(&member);
}

static void death(void **state)
{
	(void)state;
	lose_one(death_part);
}

/* Looks for a message of process 1. Returns 0, or the error. */
static int peek(struct member *member, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context context;
	struct fi_msg_tagged msg = {.addr = member->peers[1], .tag = tag, .context = &context};
	struct fi_cq_err_entry error = {0};
	ssize_t rc;

	member_start(member, fi_trecvmsg(member->ep, &msg, FI_PEEK));
	while ((rc = fi_cq_read(member->rx, &entry, 1)) == -FI_EAGAIN)
		t_holds(true);
	if (rc == 1) {
		t_eq(entry.tag, tag);
		return 0;
	}
	t_eq(rc, -FI_EAVAIL);
	t_eq(fi_cq_readerr(member->rx, &error, 0), 1);
	t_true(error.op_context == &context, "the error is that of another operation");
	return error.err;
}

/* Process 1 dies after it has sent a message. Process 0, which only looks for messages of it, finds
 * that one, and is told that no other one comes. */
static void death_peek_part(unsigned me, void *arg)
{
	struct member member;
	char addr[64];
	size_t len = sizeof(addr);
	fi_addr_t again;
	int rc;

	(void)arg;
	member_open_with(&member, me, NPROCS, RDM_CAPS | FI_DIRECTED_RECV, 0);
	if (me == 1)
		send_and_wait(&member);
	while ((rc = peek(&member, 1)))
		t_eq(rc, FI_ENOMSG);
	t_eq(peek(&member, 2), FI_ENOMSG);
	procs_put(K_GO, 1);
	while ((rc = peek(&member, 2)) == FI_ENOMSG)
		t_holds(true);
	t_eq(rc, FI_EIO);
	/* A next process may have that address. The entry still stands for this one. */
	t_ok(fi_av_lookup(member.av, member.peers[1], addr, &len));
	t_eq(fi_av_insert(member.av, addr, 1, &again, 0, NULL), 1);
	t_eq(peek(&member, 2), FI_EIO);
	t_eq(peek(&member, 1), 0);
	member_close_alone(&member);
}

static void death_peek(void **state)
{
	(void)state;
	lose_one(death_peek_part);
}

#define PENDING 40 /* operations of each kind */

struct pending {
	struct fi_context context;
	bool ended;
};

/* Starts the n-th operation with the memory of process 1: one that its adapter carries out, or one
 * that the process has to. */
static void start_pending(struct member *member, unsigned n, unsigned char *buf, void *context)
{
	const uint64_t at = member->addrs[1], key = member->keys[1];
	const fi_addr_t peer = member->peers[1];
	struct fid_ep *ep = member->ep;

	switch (n % 4) {
	case 0:
		member_start(member, fi_write(ep, buf, 4096, NULL, peer, at, key, context));
		break;
	case 1:
		member_start(member, fi_read(ep, buf, 4096, NULL, peer, at, key, context));
		break;
	case 2:
		member_start(member,
			     fi_atomic(ep, buf, 1, NULL, peer, at, key, FI_INT64, FI_SUM, context));
		break;
	default:
		member_start(member, fi_fetch_atomic(ep, buf, 1, NULL, buf + 8, NULL, peer, at, key,
						     FI_INT64, FI_SUM, context));
	}
}

/* The error entry has the peer's address since version 1.20 of the interface. */
static void check_source(const struct member *member, const struct fi_cq_err_entry *error)
{
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
	t_eq(error->src_addr, member->peers[1]);
#else
	(void)member;
	(void)error;
#endif
}

/* Process 1 is stopped, and then it dies, while operations with its memory are under way. Each of
 * them ends once; those that the process would have had to carry out fail. */
static void death_one_sided_part(unsigned me, void *arg)
{
	static struct pending pending[4 * PENDING];
	unsigned char *bufs = calloc(4 * PENDING, 4096);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	struct fi_context context;
	struct member member;
	struct pending *ended;

	(void)arg;
	t_holds(bufs);
	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED, 0);
	while (me == 1)
		pause();
	start_pending(&member, 3, bufs, &context);
	member_completion(member.tx, &context);
	procs_put(K_GO, 1);
	procs_get(PROCS_PARENT, K_GO);
	for (unsigned i = 0; i < 4 * PENDING; i++)
		start_pending(&member, i, bufs + 4096 * i, &pending[i]);
	procs_put(K_GO, 2);
	for (unsigned i = 0; i < 4 * PENDING; i++) {
		ssize_t rc;

		while ((rc = fi_cq_read(member.tx, &entry, 1)) == -FI_EAGAIN)
			t_holds(true);
		if (rc == -FI_EAVAIL) {
			t_eq(fi_cq_readerr(member.tx, &error, 0), 1);
			t_eq(error.err, FI_EIO);
			check_source(&member, &error);
			entry.op_context = error.op_context;
		}
		ended = entry.op_context;
		t_true(!ended->ended, "an operation ended twice");
		ended->ended = true;
		t_true(rc == -FI_EAVAIL || (ended - pending) % 4 < 2,
		       "a process that was stopped has carried out an operation");
	}
	t_eq(fi_cq_read(member.tx, &entry, 1), -FI_EAGAIN);
	for (unsigned i = 0; i < 4; i++) {
		start_pending(&member, i, bufs, &context);
		t_eq(member_error(member.tx, &context), FI_EIO);
	}
	member_close_alone(&member);
	free(bufs);
}

static void death_one_sided(void **state)
{
	(void)state;
	procs_start(NPROCS, nodes, death_one_sided_part, NULL);
	procs_wait_for(0, K_GO, 1);
	procs_stop(1);
	procs_put(K_GO, 1);
	procs_wait_for(0, K_GO, 2);
	procs_kill(1);
	procs_finish();
}

/* Process 1 closes its objects, and lives on: operations with it end with an error, too. */
static void closed_part(unsigned me, void *arg)
{
	unsigned char *buf = calloc(2, 4096);
	struct fi_context contexts[5];
	struct member member;

	(void)arg;
	t_holds(buf);
	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED, 0);
	if (me == 1)
		procs_get(0, K_GO);
	for (unsigned i = 0; i < 4 && me == 0; i++) {
		start_pending(&member, i, buf, &contexts[i]);
		member_completion(member.tx, &contexts[i]);
	}
	procs_put(K_GO, 1);
	if (me == 1)
		member_close_alone(&member);
	procs_put(K_GO, 2);
	procs_wait_for(1, K_GO, 2);
	for (unsigned i = 0; i < 4 && me == 0; i++) {
		start_pending(&member, i, buf, &contexts[i]);
		t_eq(member_error(member.tx, &contexts[i]), FI_EIO);
	}
	procs_barrier();
	if (me == 0)
		member_close_alone(&member);
	free(buf);
}

static void closed(void **state)
{
	(void)state;
	procs_run(NPROCS, nodes, closed_part, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death),
		cmocka_unit_test(death_peek),
		cmocka_unit_test(death_one_sided),
		cmocka_unit_test(closed),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
