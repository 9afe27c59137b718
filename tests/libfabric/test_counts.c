/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of registrations: what peers do there is counted by the registration whose key they
 * name.
 *
 * test_counts, under "softhca run --nodes 2"
 */
#define _GNU_SOURCE 1
#include "member.h"

#include <sched.h>

#define NPROCS 2
#define K_DONE MEMBER_KEY_FREE

static unsigned nodes[NPROCS] = {0, 1};

/* Process 1 counts what process 0 does, whose own endpoint has not asked for FI_RMA_EVENT. */
static void counted_part(unsigned me, void *arg)
{
	uint64_t caps = MEMBER_ONE_SIDED | (me ? FI_RMA_EVENT : 0), item = 7;
	struct fi_context context;
	struct member member;

	(void)arg;
	member_open_with(&member, me, NPROCS, caps, 0);
	if (me) {
		t_ok(fi_cntr_wait(member.remote_writes, 2, -1));
		t_ok(fi_cntr_wait(member.remote_reads, 1, -1));
		t_ok(fi_cntr_wait(member.touched, 3, -1));
	} else {
		member_start(&member,
			     fi_write(member.ep, &item, sizeof(item), NULL, member.peers[1],
				      member.addrs[1], member.keys[1], &context));
		member_completion(member.tx, &context);
		member_start(&member, fi_read(member.ep, &item, sizeof(item), NULL, member.peers[1],
					      member.addrs[1], member.keys[1], &context));
		member_completion(member.tx, &context);
		member_start(&member,
			     fi_atomic(member.ep, &item, 1, NULL, member.peers[1], member.addrs[1],
				       member.keys[1], FI_UINT64, FI_SUM, &context));
		member_completion(member.tx, &context);
	}
	member_silent(&member);
	t_eq(fi_cntr_read(member.remote_writes), me ? 2 : 0);
	t_eq(fi_cntr_read(member.touched), me ? 3 : 0);
	member_close(&member);
}

static void counted(void **state)
{
	(void)state;
	procs_run(NPROCS, nodes, counted_part, NULL);
}

/* Writes to both registrations, adds to the second one and reads from there. */
static void use_overlapping(struct member *member)
{
	uint64_t item[3] = {1, 2, 3};
	struct fi_context context;
	uint64_t at = member->addrs[1] + 4096, first = procs_get(1, K_DONE),
		 second = procs_get(1, K_DONE + 1);
	struct fi_rma_iov there[] = {{at, 8, first}, {at + 8, 8, second}, {at + 16, 8, first}};
	struct iovec iov = {item, sizeof(item)};
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = member->peers[1],
		.rma_iov = there,
		.rma_iov_count = 3,
		.context = &context,
	};

	member_start(member, fi_writemsg(member->ep, &msg, FI_COMPLETION));
	member_completion(member->tx, &context);
	member_start(member, fi_atomic(member->ep, item, 1, NULL, member->peers[1], at, second,
				       FI_UINT64, FI_SUM, &context));
	member_completion(member->tx, &context);
	member_start(member,
		     fi_read(member->ep, item, 8, NULL, member->peers[1], at, second, &context));
	member_completion(member->tx, &context);
	t_eq(item[0], 2);
}

/* Two registrations of process 1 overlap. Each counts what names its key, writes and reads by
 * themselves, once for each operation. */
static void overlapping_part(unsigned me, void *arg)
{
	struct fid_cntr *writes[2], *reads[2];
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct member member;
	struct fid_mr *mr[2];

	(void)arg;
	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED | FI_RMA_EVENT, 0);
	for (unsigned i = 0; i < 2; i++) {
		t_ok(fi_mr_reg(member.domain, member.memory + 4096 * i, 8192,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr[i], NULL));
		t_ok(fi_cntr_open(member.domain, &attr, &writes[i], NULL));
		t_ok(fi_cntr_open(member.domain, &attr, &reads[i], NULL));
		t_eq(fi_mr_bind(mr[i], &writes[i]->fid, 0), -FI_EINVAL);
		t_ok(fi_mr_bind(mr[i], &writes[i]->fid, FI_REMOTE_WRITE));
		t_eq(fi_mr_bind(mr[i], &reads[i]->fid, FI_REMOTE_WRITE), -FI_EBUSY);
		t_ok(fi_mr_bind(mr[i], &reads[i]->fid, FI_REMOTE_READ));
		procs_put(K_DONE + i, fi_mr_key(mr[i]));
	}
	if (me) {
		t_ok(fi_cntr_wait(member.remote_writes, 2, -1));
		t_ok(fi_cntr_wait(member.remote_reads, 1, -1));
		t_ok(fi_cntr_wait(writes[0], 1, -1));
		t_ok(fi_cntr_wait(writes[1], 2, -1));
		t_ok(fi_cntr_wait(reads[1], 1, -1));
	} else {
		use_overlapping(&member);
	}
	member_silent(&member);
	t_eq(fi_cntr_read(writes[0]), me ? 1 : 0);
	t_eq(fi_cntr_read(writes[1]), me ? 2 : 0);
	t_eq(fi_cntr_read(reads[0]), 0);
	t_eq(fi_cntr_read(reads[1]), me ? 1 : 0);
	t_eq(fi_cntr_read(member.remote_writes), me ? 2 : 0);
	t_eq(fi_cntr_read(member.touched), 0);
	for (unsigned i = 0; i < 2; i++) {
		t_ok(fi_close(&mr[i]->fid));
		t_ok(fi_close(&writes[i]->fid));
		t_ok(fi_close(&reads[i]->fid));
	}
	member_close(&member);
}

static void overlapping(void **state)
{
	(void)state;
	procs_run(NPROCS, nodes, overlapping_part, NULL);
}

/* Process 1 is gone as soon as it has seen what process 0 does there, which is a success even if
 * nobody is left to count it. */
static void leaving_part(unsigned me, void *arg)
{
	struct fi_context context;
	struct member member;
	uint64_t item = 1;

	(void)arg;
	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED | FI_RMA_EVENT, 0);
	if (me) {
		while (!__atomic_load_n((uint64_t *)(void *)member.memory, __ATOMIC_ACQUIRE))
			sched_yield();
	} else {
		member_start(&member,
			     fi_atomic(member.ep, &item, 1, NULL, member.peers[1], member.addrs[1],
				       member.keys[1], FI_UINT64, FI_SUM, &context));
		member_completion(member.tx, &context);
	}
	member_close_alone(&member);
}

static void leaving(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		procs_run(NPROCS, nodes, leaving_part, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted),
		cmocka_unit_test(leaving),
		cmocka_unit_test(overlapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
