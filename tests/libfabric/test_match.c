/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which receive gets which message, and what becomes of both: tags and masks, sources, order, data
 * for the completion, pieces, truncation, cancelling, looking for messages and claiming them.
 * Process 0 sends to process 1.
 *
 * test_match NODES [delivered], under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <string.h>

#define NPROCS 2
#define CAPS   (FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE)
#define LONG   (256u << 10)

static unsigned nodes[NPROCS];
static bool delivered; /* sends whose receives are posted end when they are delivered */

/* ---- short forms ---- */

/* Sends `len` bytes of data `seed`, and waits for the send's end. */
static void send_with(struct member *member, uint64_t tag, size_t len, unsigned seed,
		      uint64_t flags)
{
	unsigned char *data = malloc(len + 1);
	struct iovec iov = {data, len};
	struct fi_context context;
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .iov_count = 1,
				    .addr = member->peers[1],
				    .tag = tag,
				    .context = &context};
	struct fi_cq_tagged_entry entry;

	member_fill(data, len, seed);
	member_start(member, fi_tsendmsg(member->ep, &msg, FI_COMPLETION | flags));
	entry = member_completion(member->tx, &context);
	t_eq(entry.flags, FI_SEND | FI_TAGGED);
	free(data);
}

static void send_tagged(struct member *member, uint64_t tag, size_t len, unsigned seed)
{
	send_with(member, tag, len, seed, 0);
}

static void recv_tagged(struct member *member, void *buf, size_t len, fi_addr_t from, uint64_t tag,
			uint64_t ignore, void *context)
{
	member_start(member, fi_trecv(member->ep, buf, len, NULL, from, tag, ignore, context));
}

/* Looks for a message. Returns true if there is one, which *entry describes. */
static bool peek(struct member *member, uint64_t tag, uint64_t flags, void *context,
		 struct fi_cq_tagged_entry *entry)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
	struct fi_cq_err_entry error = {0};
	ssize_t rc;

	member_start(member, fi_trecvmsg(member->ep, &msg, FI_PEEK | flags));
	while ((rc = fi_cq_read(member->rx, entry, 1)) == -FI_EAGAIN)
		;
	if (rc == 1) {
		t_true(entry->op_context == context, "the completion is another operation's");
		return true;
	}
	t_eq(rc, -FI_EAVAIL);
	t_eq(fi_cq_readerr(member->rx, &error, 0), 1);
	t_eq(error.err, FI_ENOMSG);
	t_true(error.op_context == context, "the error is another operation's");
	return false;
}

/* Waits until a message with this tag has come. */
static void await(struct member *member, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context context;

	while (!peek(member, tag, 0, &context, &entry))
		;
}

/* ---- tags, masks, sources ---- */

static void tags_sender(struct member *member)
{
	procs_barrier();
	send_tagged(member, 0x105, 10, 1);
	send_tagged(member, 0x105, 11, 2);
	send_tagged(member, 7, 12, 3);
	send_tagged(member, UINT64_C(0xf000000000000009), 13, 4);
	send_tagged(member, UINT64_C(0xe000000000000009), 14, 5);
}

/* The first receive that fits gets the message, whether it was posted before or comes later. */
static void tags_receiver(struct member *member)
{
	unsigned char bufs[5][64];
	struct fi_context contexts[5];
	struct fi_cq_tagged_entry entry;
	fi_addr_t from;

	recv_tagged(member, bufs[0], 64, member->peers[0], 7, 0, &contexts[0]);
	recv_tagged(member, bufs[1], 64, FI_ADDR_UNSPEC, 0x100, 0xff, &contexts[1]);
	recv_tagged(member, bufs[2], 64, member->peers[0], 0x105, 0, &contexts[2]);
	/* Nothing comes from this process itself. */
	recv_tagged(member, bufs[3], 64, member->peers[1], 0, UINT64_MAX, &contexts[3]);
	procs_barrier();
	while (fi_cq_readfrom(member->rx, &entry, 1, &from) == -FI_EAGAIN)
		;
	t_true(entry.op_context == &contexts[1], "another receive got the message");
	t_eq(from, member->peers[0]);
	t_eq(entry.tag, 0x105);
	t_eq(entry.len, 10);
	t_eq(entry.flags, FI_RECV | FI_TAGGED);
	t_true(entry.buf == bufs[1], "the completion names another buffer");
	member_check(bufs[1], 10, 1);
	entry = member_completion(member->rx, &contexts[2]);
	t_eq(entry.len, 11);
	member_check(bufs[2], 11, 2);
	member_completion(member->rx, &contexts[0]);
	member_check(bufs[0], 12, 3);
	await(member, UINT64_C(0xe000000000000009));
	recv_tagged(member, bufs[4], 64, FI_ADDR_UNSPEC, 9, UINT64_C(0xff) << 56, &contexts[4]);
	entry = member_completion(member->rx, &contexts[4]);
	t_eq(entry.tag, UINT64_C(0xf000000000000009));
	member_check(bufs[4], 13, 4);
	recv_tagged(member, bufs[4], 64, member->peers[0], 9, UINT64_C(0xff) << 56, &contexts[4]);
	entry = member_completion(member->rx, &contexts[4]);
	t_eq(entry.tag, UINT64_C(0xe000000000000009));
	t_ok((int)fi_cancel(&member->ep->fid, &contexts[3]));
	t_eq(member_error(member->rx, &contexts[3]), FI_ECANCELED);
}

/* Receives with a source and a mask that they share, before their messages: in their order. */
static void shared_mask_sender(struct member *member)
{
	for (unsigned i = 0; i < 200; i++) {
		if (i % 20 == 0)
			procs_barrier();
		send_with(member, UINT64_C(3) << 62 | i % 4, i % 5 == 0 ? LONG : i, i,
			  delivered ? FI_DELIVERY_COMPLETE : 0);
	}
}

static void shared_mask_receiver(struct member *member)
{
	static unsigned char bufs[20][LONG];
	struct fi_context contexts[20];
	struct fi_cq_tagged_entry entry;

	for (unsigned i = 0; i < 200; i++) {
		if (i % 20 == 0) {
			for (unsigned k = 0; k < 20; k++)
				recv_tagged(member, bufs[k], LONG, member->peers[0], (i + k) % 4,
					    UINT64_C(3) << 62, &contexts[k]);
			procs_barrier();
		}
		while (fi_cq_read(member->rx, &entry, 1) == -FI_EAGAIN)
			;
		for (unsigned k = 0; k < 20; k++) {
			unsigned n = i / 20 * 20 + k;

			if (entry.op_context != &contexts[k])
				continue;
			t_eq(entry.len, n % 5 == 0 ? LONG : n);
			member_check(bufs[k], entry.len, n);
		}
	}
}

/* ---- what goes along, and what comes of it ---- */

static void data_sender(struct member *member)
{
	unsigned char *data = malloc(LONG);
	struct fi_context context;
	struct iovec iov[3] = {{data, 3}, {data + 3, 0}, {data + 3, LONG - 3}};
	struct fi_msg_tagged tagged = {.msg_iov = iov,
				       .iov_count = 3,
				       .addr = member->peers[1],
				       .tag = 5,
				       .data = 99,
				       .context = &context};

	member_fill(data, LONG, 6);
	procs_barrier();
	member_start(member, fi_inject(member->ep, data, 100, member->peers[1]));
	member_start(member, fi_injectdata(member->ep, data, 0, UINT64_MAX, member->peers[1]));
	member_start(member, fi_tinjectdata(member->ep, data, 4096, 17, member->peers[1], 3));
	member_start(member,
		     fi_senddata(member->ep, data, LONG, NULL, 18, member->peers[1], &context));
	t_eq(member_completion(member->tx, &context).flags, FI_SEND | FI_MSG);
	member_start(member, fi_tsendmsg(member->ep, &tagged,
					 FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_FENCE));
	member_completion(member->tx, &context);
	t_eq(fi_tinject(member->ep, data, 4097, member->peers[1], 3), -FI_EINVAL);
	free(data);
}

static void data_receiver(struct member *member)
{
	unsigned char *buf = malloc(LONG), *more = malloc(LONG);
	struct fi_context contexts[4];
	struct fi_cq_tagged_entry entry;
	struct iovec iov[3] = {{more, 1}, {more + 1, 4096}, {more + 4097, LONG - 4097}};

	member_start(member, fi_recv(member->ep, buf, LONG, NULL, member->peers[0], &contexts[0]));
	member_start(member, fi_recv(member->ep, buf, LONG, NULL, FI_ADDR_UNSPEC, &contexts[1]));
	procs_barrier();
	entry = member_completion(member->rx, &contexts[0]);
	t_eq(entry.flags, FI_RECV | FI_MSG);
	t_eq(entry.len, 100);
	member_check(buf, 100, 6);
	entry = member_completion(member->rx, &contexts[1]);
	t_eq(entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	t_eq(entry.data, UINT64_MAX);
	t_eq(entry.len, 0);
	recv_tagged(member, buf, LONG, member->peers[0], 3, 0, &contexts[2]);
	entry = member_completion(member->rx, &contexts[2]);
	t_eq(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	t_eq(entry.data, 17);
	t_eq(entry.len, 4096);
	member_start(member, fi_recvv(member->ep, iov, NULL, 3, FI_ADDR_UNSPEC, &contexts[3]));
	entry = member_completion(member->rx, &contexts[3]);
	t_eq(entry.data, 18);
	member_check(more, LONG, 6);
	memset(more, 0, LONG);
	member_start(member,
		     fi_trecvv(member->ep, iov, NULL, 3, member->peers[0], 5, 0, &contexts[3]));
	entry = member_completion(member->rx, &contexts[3]);
	t_eq(entry.data, 99);
	member_check(more, LONG, 6);
	free(buf);
	free(more);
}

static void truncated_sender(struct member *member)
{
	procs_barrier();
	send_tagged(member, 1, 100, 1);
	send_tagged(member, 1, LONG, 2);
	send_tagged(member, 2, 9, 3);
}

static void truncated_receiver(struct member *member)
{
	unsigned char bufs[2][64];
	struct fi_context contexts[3];
	struct fi_cq_err_entry error;

	recv_tagged(member, bufs[0], 64, member->peers[0], 1, 0, &contexts[0]);
	recv_tagged(member, bufs[1], 10, FI_ADDR_UNSPEC, 1, 0, &contexts[1]);
	procs_barrier();
	error = member_failure(member->rx, &contexts[0]);
	t_eq(error.err, FI_ETRUNC);
	t_eq(error.len, 64);
	t_eq(error.olen, 36);
	t_eq(error.tag, 1);
	member_check(bufs[0], 64, 1);
	error = member_failure(member->rx, &contexts[1]);
	t_eq(error.err, FI_ETRUNC);
	t_eq(error.len, 10);
	t_eq(error.olen, LONG - 10);
	member_check(bufs[1], 10, 2);
	recv_tagged(member, NULL, 0, FI_ADDR_UNSPEC, 2, 0, &contexts[2]);
	t_eq(member_failure(member->rx, &contexts[2]).olen, 9);
}

/* ---- taking receives back ---- */

static void cancel_sender(struct member *member)
{
	for (unsigned round = 0; round < 20; round++) {
		procs_barrier();
		send_tagged(member, 4, 16, round);
	}
}

static void cancel_receiver(struct member *member)
{
	unsigned char bufs[3][64];
	struct fi_context contexts[3], unknown;

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 3; i++)
			recv_tagged(member, bufs[i], 64, i == 1 ? FI_ADDR_UNSPEC : member->peers[0],
				    4, 0, &contexts[i]);
		t_ok((int)fi_cancel(&member->ep->fid, &contexts[0]));
		t_eq(member_error(member->rx, &contexts[0]), FI_ECANCELED);
		t_ok((int)fi_cancel(&member->ep->fid, &contexts[1]));
		t_eq(member_error(member->rx, &contexts[1]), FI_ECANCELED);
		t_eq(fi_cancel(&member->ep->fid, &unknown), -FI_ENOENT);
		procs_barrier();
		member_completion(member->rx, &contexts[2]);
		member_check(bufs[2], 16, round);
		t_eq(fi_cancel(&member->ep->fid, &contexts[2]), -FI_ENOENT);
	}
}

/* ---- looking for messages ---- */

static void look_sender(struct member *member)
{
	struct fi_context contexts[8];
	unsigned char *data = malloc(LONG);

	member_fill(data, LONG, 1);
	procs_barrier();
	for (unsigned i = 0; i < 8; i++)
		member_start(member, fi_tsenddata(member->ep, data, i % 2 ? LONG : 10 + i, NULL,
						  1000 + i, member->peers[1], i / 2, &contexts[i]));
	for (unsigned i = 0; i < 8; i++) {
		struct fi_cq_tagged_entry entry;

		while (fi_cq_read(member->tx, &entry, 1) == -FI_EAGAIN)
			;
	}
	free(data);
}

static void claim(struct member *member, uint64_t flags, void *buf, size_t len, void *context)
{
	struct iovec iov = {buf, len};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context};

	member_start(member, fi_trecvmsg(member->ep, &msg, FI_CLAIM | flags));
}

static void look_receiver(struct member *member)
{
	unsigned char *buf = malloc(LONG);
	struct fi_context context, claims[4];
	struct fi_cq_tagged_entry entry;

	t_true(!peek(member, 0, 0, &context, &entry), "a message that was not sent was found");
	procs_barrier();
	await(member, 3);
	/* Looking changes nothing. */
	for (unsigned i = 0; i < 2; i++) {
		t_true(peek(member, 0, 0, &context, &entry), "the message is gone");
		t_eq(entry.len, 10);
		t_eq(entry.data, 1000);
		t_eq(entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	}
	/* Claimed messages are nobody else's; the second message of the tag is the long one. */
	t_true(peek(member, 0, FI_CLAIM, &claims[0], &entry), "the message is gone");
	t_eq(entry.data, 1000);
	t_true(peek(member, 0, FI_CLAIM, &claims[1], &entry), "the message is gone");
	t_eq(entry.len, LONG);
	t_eq(entry.data, 1001);
	t_true(!peek(member, 0, 0, &context, &entry), "a claimed message was found");
	claim(member, 0, buf, LONG, &claims[1]);
	entry = member_completion(member->rx, &claims[1]);
	t_eq(entry.len, LONG);
	t_eq(entry.data, 1001);
	member_check(buf, LONG, 1);
	claim(member, 0, buf, 4, &claims[0]);
	t_eq(member_failure(member->rx, &claims[0]).olen, 6);
	/* Discarded: claimed before, or found now. */
	t_true(peek(member, 1, FI_CLAIM, &claims[2], &entry), "the message is gone");
	claim(member, FI_DISCARD, NULL, 0, &claims[2]);
	member_completion(member->rx, &claims[2]);
	t_true(peek(member, 1, FI_DISCARD, &context, &entry), "the message is gone");
	t_eq(entry.data, 1003);
	t_true(!peek(member, 1, 0, &context, &entry), "a message that was discarded was found");
	/* All other messages are received in order. */
	for (unsigned i = 4; i < 8; i++) {
		recv_tagged(member, buf, LONG, FI_ADDR_UNSPEC, i / 2, 0, &context);
		entry = member_completion(member->rx, &context);
		t_eq(entry.data, 1000 + i);
	}
	free(buf);
}

/* ---- all ---- */

MEMBER_TEST(tags, 0)
MEMBER_TEST(shared_mask, 0)
MEMBER_TEST(data, 0)
MEMBER_TEST(truncated, 0)
MEMBER_TEST(cancel, 0)
MEMBER_TEST(look, 0)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags),      cmocka_unit_test(shared_mask), cmocka_unit_test(data),
		cmocka_unit_test(truncated), cmocka_unit_test(cancel),      cmocka_unit_test(look),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	delivered = argc > 2 && !strcmp(argv[2], "delivered");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
