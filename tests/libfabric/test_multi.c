/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers for several messages, and which operations are reported. Process 0 sends to process 1.
 *
 * test_multi NODES, under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <string.h>

#define NPROCS 2
#define CAPS   (FI_MSG | FI_MULTI_RECV)

static unsigned nodes[NPROCS];

/* ---- buffers for several messages ---- */

#define MULTI 4096

static void multi_sender(struct member *member)
{
	unsigned char data[1000];
	struct fi_context context;

	procs_barrier();
	for (unsigned i = 0; i < 20; i++) {
		member_fill(data, sizeof(data), i);
		member_start(member, fi_send(member->ep, data, sizeof(data), NULL, member->peers[1],
					     &context));
		member_completion(member->tx, &context);
	}
	procs_barrier();
}

static void multi_receiver(struct member *member)
{
	static unsigned char bufs[2][MULTI];
	struct fi_context contexts[2];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	size_t min = 200, len = sizeof(min);
	unsigned released = 0;

	t_ok(fi_setopt(&member->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, len));
	min = 0;
	t_ok(fi_getopt(&member->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	t_eq(min, 200);
	for (unsigned i = 0; i < 2; i++) {
		const struct iovec empty = {bufs[i], 0};
		struct iovec iov = {bufs[i], MULTI};
		struct fi_msg msg = {.msg_iov = &iov,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .context = &contexts[i]};

		member_start(member, fi_recvmsg(member->ep, &msg, FI_MULTI_RECV));
		msg.msg_iov = &empty;
		t_eq(fi_recvmsg(member->ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	}
	procs_barrier();
	for (unsigned i = 0; i < 20; i++) {
		unsigned which = i / 4 % 2;
		struct iovec iov = {bufs[which], MULTI};
		struct fi_msg msg = {.msg_iov = &iov,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .context = &contexts[which]};

		entry = member_completion(member->rx, &contexts[which]);
		t_eq(entry.len, 1000);
		t_true((unsigned char *)entry.buf == bufs[which] + i % 4 * 1000,
		       "message %u is not behind the one before", i);
		member_check(entry.buf, entry.len, i);
		/* 96 bytes are left after the fourth message: the buffer is the user's again. */
		t_eq(!!(entry.flags & FI_MULTI_RECV), i % 4 == 3);
		if (entry.flags & FI_MULTI_RECV) {
			released++;
			member_start(member, fi_recvmsg(member->ep, &msg, FI_MULTI_RECV));
		}
	}
	t_eq(released, 5);
	for (unsigned i = 0; i < 2; i++) {
		t_ok((int)fi_cancel(&member->ep->fid, &contexts[i]));
		error = member_failure(member->rx, &contexts[i]);
		t_eq(error.err, FI_ECANCELED);
		t_true(error.flags & FI_MULTI_RECV, "the buffer is still posted");
	}
	procs_barrier();
}

/* ---- which operations are reported ---- */

static void selective_sender(struct member *member)
{
	unsigned char byte = 0;
	struct iovec iov = {&byte, 1};
	struct fi_context quiet, loud;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = member->peers[1], .context = &loud};

	procs_barrier();
	member_start(member, fi_send(member->ep, &byte, 1, NULL, member->peers[1], &quiet));
	member_start(member, fi_sendmsg(member->ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
	member_completion(member->tx, &loud);
}

static void selective_receiver(struct member *member)
{
	unsigned char bytes[2] = {1, 1};
	struct iovec iov = {&bytes[1], 1};
	struct fi_context quiet, loud;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &loud};

	member_start(member, fi_recv(member->ep, &bytes[0], 1, NULL, FI_ADDR_UNSPEC, &quiet));
	member_start(member, fi_recvmsg(member->ep, &msg, FI_COMPLETION));
	procs_barrier();
	member_completion(member->rx, &loud);
	t_eq(bytes[0], 0);
}

/* ---- all ---- */

MEMBER_TEST(multi, 0)
MEMBER_TEST(selective, FI_SELECTIVE_COMPLETION)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multi),
		cmocka_unit_test(selective),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
