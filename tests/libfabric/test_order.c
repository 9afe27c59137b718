/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of operations that fi_getinfo(3) offers, fences, and how operations that were refused
 * with -FI_EAGAIN get room. Process 0 acts on process 1.
 *
 * test_order NODES, under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <string.h>

#define NPROCS 2
#define K_STEP MEMBER_KEY_FREE
#define CAPS   (MEMBER_ONE_SIDED | FI_TAGGED)
#define TAG    5

static unsigned nodes[NPROCS];

/* ---- the order ---- */

/* Asks for an order, in one of its fields. Returns fi_getinfo()'s result. */
static int ask(uint64_t tx, uint64_t rx, uint64_t tx_comp, uint64_t rx_comp, size_t max_order,
	       struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int rc;

	t_holds(hints);
	hints->fabric_attr->prov_name = strdup("tupleq");
	hints->caps = CAPS;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->tx_attr->msg_order = tx;
	hints->rx_attr->msg_order = rx;
	hints->tx_attr->comp_order = tx_comp;
	hints->rx_attr->comp_order = rx_comp;
	hints->ep_attr->max_order_waw_size = max_order;
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, info);
	fi_freeinfo(hints);
	return rc;
}

/* Messages are received in the order in which they were sent. Nothing else has an order, and no
 * completions have one. */
static void order_part(unsigned me, void *arg)
{
	struct fi_info *info;

	(void)me;
	(void)arg;
	t_ok(ask(FI_ORDER_SAS, FI_ORDER_SAS, 0, 0, 0, &info));
	t_eq(info->tx_attr->msg_order, FI_ORDER_SAS);
	t_eq(info->rx_attr->msg_order, FI_ORDER_SAS);
	t_eq(info->tx_attr->comp_order, 0);
	t_eq(info->rx_attr->comp_order, 0);
	t_eq(info->ep_attr->max_order_raw_size, 0);
	t_eq(info->ep_attr->max_order_war_size, 0);
	t_eq(info->ep_attr->max_order_waw_size, 0);
	fi_freeinfo(info);
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t order = UINT64_C(1) << bit;
		int rc = order == FI_ORDER_SAS ? 0 : -FI_ENODATA;

		t_eq(ask(order, 0, 0, 0, 0, &info), rc);
		if (!rc)
			fi_freeinfo(info);
		t_eq(ask(0, order, 0, 0, 0, &info), rc);
		if (!rc)
			fi_freeinfo(info);
		t_eq(ask(0, 0, order, 0, 0, &info), -FI_ENODATA);
		t_eq(ask(0, 0, 0, order, 0, &info), -FI_ENODATA);
	}
	t_eq(ask(0, 0, 0, 0, 1, &info), -FI_ENODATA);
}

static void order(void **state)
{
	(void)state;
	procs_run(1, NULL, order_part, NULL);
}

/* ---- fences ---- */

static ssize_t fenced_write(struct member *member, void *buf, void *context)
{
	const struct iovec iov = {buf, 8};
	const struct fi_rma_iov there = {member->addrs[1], 8, member->keys[1]};
	const struct fi_msg_rma msg = {.msg_iov = &iov,
				       .iov_count = 1,
				       .addr = member->peers[1],
				       .rma_iov = &there,
				       .rma_iov_count = 1,
				       .context = context};

	return fi_writemsg(member->ep, &msg, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_atomic(struct member *member, void *buf, void *context)
{
	const struct fi_ioc iov = {buf, 1};
	const struct fi_rma_ioc there = {member->addrs[1], 1, member->keys[1]};
	const struct fi_msg_atomic msg = {.msg_iov = &iov,
					  .iov_count = 1,
					  .addr = member->peers[1],
					  .rma_iov = &there,
					  .rma_iov_count = 1,
					  .datatype = FI_UINT64,
					  .op = FI_SUM,
					  .context = context};

	return fi_atomicmsg(member->ep, &msg, FI_FENCE | FI_COMPLETION);
}

static ssize_t fenced_send(struct member *member, void *buf, void *context)
{
	const struct iovec iov = {buf, 8};
	const struct fi_msg_tagged msg = {.msg_iov = &iov,
					  .iov_count = 1,
					  .addr = member->peers[1],
					  .tag = TAG,
					  .context = context};

	return fi_tsendmsg(member->ep, &msg, FI_FENCE | FI_COMPLETION);
}

/* An operation with a fence starts when all earlier ones have ended: their completions are there,
 * and what they have written is not written over what the fenced one writes. */
static void fence_sender(struct member *member)
{
	static ssize_t (*const fenced[])(struct member * member, void *buf, void *context) = {
		fenced_write, fenced_atomic, fenced_send};
	unsigned char *data = malloc(MEMBER_BYTES);
	struct fi_context first, second;
	uint64_t value = 1, back = 0;

	memset(data, 0, MEMBER_BYTES);
	for (unsigned i = 0; i < 60; i++) {
		ssize_t rc;

		member_start(member,
			     fi_write(member->ep, data, MEMBER_BYTES, NULL, member->peers[1],
				      member->addrs[1], member->keys[1], &first));
		while ((rc = fenced[i % 3](member, &value, &second)) == -FI_EAGAIN)
			t_holds(true);
		t_eq(rc, 0);
		member_completion(member->tx, &first);
		member_completion(member->tx, &second);
		member_start(member, fi_read(member->ep, &back, 8, NULL, member->peers[1],
					     member->addrs[1], member->keys[1], &first));
		member_completion(member->tx, &first);
		t_eq(back, i % 3 == 2 ? 0 : 1);
	}
	free(data);
}

static void fence_receiver(struct member *member)
{
	struct fi_context context;
	uint64_t value;

	for (unsigned i = 0; i < 20; i++) {
		member_start(member, fi_trecv(member->ep, &value, 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					      &context));
		member_completion(member->rx, &context);
		t_eq(value, 1);
	}
}

static void fences(void **state)
{
	struct member_part how = {fence_sender, fence_receiver, CAPS, 0};

	(void)state;
	procs_run(NPROCS, nodes, member_part, &how);
}

/* ---- room ---- */

#define LONG 65536 /* a message that waits for its receive */

/* As many sends as there is room for wait for their receives. Each receive makes room for one. */
static void sends_sender(struct member *member)
{
	size_t room = member->info->tx_attr->size;
	unsigned char *data = calloc(1, LONG);
	struct fi_context *contexts = calloc(room + 1, sizeof(*contexts));

	for (size_t i = 0; i < room; i++)
		t_eq(fi_tsend(member->ep, data, LONG, NULL, member->peers[1], TAG, &contexts[i]),
		     0);
	for (unsigned i = 0; i < 100; i++)
		t_eq(fi_tsend(member->ep, data, LONG, NULL, member->peers[1], TAG, &contexts[room]),
		     -FI_EAGAIN);
	/* Injected messages have their own room, so that programs that answer don't wait for each
	 * other. */
	t_eq(fi_tinject(member->ep, data, 1, member->peers[1], TAG + 1), 0);
	procs_put(K_STEP, 1);
	member_start(member, fi_tsend(member->ep, data, LONG, NULL, member->peers[1], TAG,
				      &contexts[room]));
	procs_put(K_STEP, 2);
	for (size_t i = 0; i <= room; i++) {
		struct fi_cq_tagged_entry entry;

		while (fi_cq_read(member->tx, &entry, 1) == -FI_EAGAIN)
			t_holds(true);
	}
	free(contexts);
	free(data);
}

static void sends_receiver(struct member *member)
{
	unsigned char *data = malloc(LONG);
	struct fi_context context;

	for (size_t i = 0; i <= member->info->tx_attr->size; i++) {
		procs_wait_for(0, K_STEP, i ? 2 : 1);
		member_start(member, fi_trecv(member->ep, data, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0,
					      &context));
		member_completion(member->rx, &context);
	}
	member_start(member,
		     fi_trecv(member->ep, data, LONG, NULL, FI_ADDR_UNSPEC, TAG + 1, 0, &context));
	member_completion(member->rx, &context);
	free(data);
}

static void room_for_sends(void **state)
{
	struct member_part how = {sends_sender, sends_receiver, CAPS, 0};

	(void)state;
	procs_run(NPROCS, nodes, member_part, &how);
}

/* Reading a completion makes room for an operation, and so does cancelling a receive. */
static void completions_sender(struct member *member)
{
	struct fi_context context;
	size_t room = 0, posted = 0;
	unsigned char byte;

	/* An operation of no bytes ends at once. */
	while (fi_write(member->ep, NULL, 0, NULL, member->peers[1], member->addrs[1],
			member->keys[1], &context) == 0)
		room++;
	t_holds(room >= member->info->tx_attr->size);
	for (unsigned i = 0; i < 10; i++) {
		t_eq(fi_write(member->ep, NULL, 0, NULL, member->peers[1], member->addrs[1],
			      member->keys[1], &context),
		     -FI_EAGAIN);
		member_completion(member->tx, &context);
		t_eq(fi_write(member->ep, NULL, 0, NULL, member->peers[1], member->addrs[1],
			      member->keys[1], &context),
		     0);
	}
	while (room--)
		member_completion(member->tx, &context);
	while (fi_trecv(member->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &context) == 0)
		posted++;
	t_eq(posted, member->info->rx_attr->size);
	t_eq(fi_trecv(member->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), -FI_EAGAIN);
	t_eq(fi_cancel(&member->ep->fid, &context), 0);
	t_eq(member_error(member->rx, &context), FI_ECANCELED);
	t_eq(fi_trecv(member->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), 0);
	/* The rest ends with the endpoint. */
}

static void nothing(struct member *member)
{
	(void)member;
}

static void room_by_reading(void **state)
{
	struct member_part how = {completions_sender, nothing, CAPS, 0};

	(void)state;
	procs_run(NPROCS, nodes, member_part, &how);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order),
		cmocka_unit_test(fences),
		cmocka_unit_test(room_for_sends),
		cmocka_unit_test(room_by_reading),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
