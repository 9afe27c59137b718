/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations between processes: sums that all add to, old values, comparisons, pieces, and
 * what is refused. (unit_arith.c and portals/unit_atomic.c test the results of each operation.)
 *
 * test_atomics NODES [events], under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <string.h>

#define NPROCS 3
#define TIMES  200

static unsigned nodes[NPROCS];
static uint64_t events; /* FI_RMA_EVENT, or 0: targets count what peers do */

typedef void part_fn(struct member *member);

static void part(unsigned me, void *arg)
{
	part_fn *fn = *(part_fn **)arg;
	struct member member;

	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED | events, 0);
	fn(&member);
	member_close(&member);
}

static void run(part_fn *fn)
{
	procs_run(NPROCS, nodes, part, &fn);
}

/* All processes add to the memory of the first one, by all three families, at any alignment. */
static void sums_part(struct member *member)
{
	const double half = 0.5;
	const int64_t one = 1;
	int64_t sum, old, next, last = -1;
	struct fi_context context;

	for (unsigned i = 0; i < TIMES; i++) {
		member_start(member,
			     fi_inject_atomic(member->ep, &one, 1, member->peers[0],
					      member->addrs[0], member->keys[0], FI_INT64, FI_SUM));
		member_start(member, fi_atomic(member->ep, &half, 1, NULL, member->peers[0],
					       member->addrs[0] + 65, member->keys[0], FI_DOUBLE,
					       FI_SUM, &context));
		t_eq(member_completion(member->tx, &context).flags, FI_ATOMIC | FI_WRITE);
		member_start(member, fi_fetch_atomic(member->ep, &one, 1, NULL, &old, NULL,
						     member->peers[0], member->addrs[0] + 16,
						     member->keys[0], FI_INT64, FI_SUM, &context));
		t_eq(member_completion(member->tx, &context).flags, FI_ATOMIC | FI_READ);
		t_true(old > last, "the value was %ld after %ld", (long)old, (long)last);
		last = old;
	}
	for (unsigned i = 0; i < TIMES; i++) {
		sum = 0;
		do {
			next = sum + 1;
			member_start(member,
				     fi_compare_atomic(member->ep, &next, 1, NULL, &sum, NULL, &old,
						       NULL, member->peers[0],
						       member->addrs[0] + 24, member->keys[0],
						       FI_INT64, FI_CSWAP, &context));
			member_completion(member->tx, &context);
			if (old == sum)
				break;
			sum = old;
		} while (true);
	}
	t_ok(fi_cntr_wait(member->writes, 2 * TIMES, -1));
	member_silent(member);
	if (events && member->me == 0) {
		t_ok(fi_cntr_wait(member->remote_writes, 2 * TIMES * NPROCS, -1));
		t_holds(fi_cntr_read(member->remote_reads) >= 2 * TIMES * NPROCS);
	}
	if (member->me == 0) {
		double doubles;

		memcpy(&sum, member->memory, sizeof(sum));
		t_eq(sum, NPROCS * TIMES);
		memcpy(&doubles, member->memory + 65, sizeof(doubles));
		t_true(doubles == NPROCS * TIMES / 2.0, "the sum is %f", doubles);
		memcpy(&sum, member->memory + 16, sizeof(sum));
		t_eq(sum, NPROCS * TIMES);
		memcpy(&sum, member->memory + 24, sizeof(sum));
		t_eq(sum, NPROCS * TIMES);
	}
}

static void sums(void **state)
{
	(void)state;
	run(sums_part);
}

/* Items in pieces on all sides; reads and swaps. The process is its own peer, too. */
static void pieces_part(struct member *member)
{
	uint32_t own[6] = {1, 2, 3, 4, 5, 6}, old[6] = {0}, back[6] = {0};
	uint64_t base = member->addrs[member->me] + 100, key = member->keys[member->me];
	struct fi_ioc from[] = {{own, 1}, {own + 1, 5}};
	struct fi_ioc to[] = {{old, 4}, {old + 4, 2}};
	struct fi_rma_ioc there[] = {{base, 2, key}, {base + 4096, 4, key}};
	struct fi_context context;
	struct fi_msg_atomic msg = {
		.msg_iov = from,
		.iov_count = 2,
		.addr = member->peers[member->me],
		.rma_iov = there,
		.rma_iov_count = 2,
		.datatype = FI_UINT32,
		.op = FI_ATOMIC_WRITE,
		.context = &context,
	};

	member_start(member, fi_atomicmsg(member->ep, &msg, FI_COMPLETION));
	member_completion(member->tx, &context);
	msg.op = FI_PROD;
	member_start(member, fi_fetch_atomicmsg(member->ep, &msg, to, NULL, 2, FI_COMPLETION));
	member_completion(member->tx, &context);
	t_mem_eq(old, own, sizeof(own));
	member_start(member, fi_fetch_atomic(member->ep, NULL, 2, NULL, back, NULL, msg.addr, base,
					     key, FI_UINT32, FI_ATOMIC_READ, &context));
	member_completion(member->tx, &context);
	member_start(member,
		     fi_fetch_atomic(member->ep, NULL, 4, NULL, back + 2, NULL, msg.addr,
				     base + 4096, key, FI_UINT32, FI_ATOMIC_READ, &context));
	member_completion(member->tx, &context);
	for (unsigned i = 0; i < 6; i++)
		t_eq(back[i], (i + 1) * (i + 1));
	member_silent(member);
}

static void pieces(void **state)
{
	(void)state;
	run(pieces_part);
}

/* Operations that the target refuses end with an error, and no others do. */
static void refused_part(struct member *member)
{
	unsigned peer = (member->me + 1) % NPROCS;
	uint32_t value = 9, old;
	struct fi_context context;
	struct fid_mr *mr;
	uint32_t own = 5;

	t_ok(fi_mr_reg(member->domain, &own, sizeof(own), FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	member_start(member,
		     fi_atomic(member->ep, &value, 1, NULL, member->peers[member->me],
			       (uintptr_t)&own, fi_mr_key(mr), FI_UINT32, FI_SUM, &context));
	t_eq(member_error(member->tx, &context), FI_EACCES);
	member_start(member, fi_fetch_atomic(member->ep, NULL, 1, NULL, &old, NULL,
					     member->peers[member->me], (uintptr_t)&own,
					     fi_mr_key(mr), FI_UINT32, FI_ATOMIC_READ, &context));
	member_completion(member->tx, &context);
	t_eq(old, 5);
	member_start(member, fi_atomic(member->ep, &value, 1, NULL, member->peers[peer],
				       member->addrs[peer] + MEMBER_BYTES - 3, member->keys[peer],
				       FI_UINT32, FI_SUM, &context));
	t_eq(member_error(member->tx, &context), FI_EFAULT);
	member_start(member, fi_atomic(member->ep, &value, 1, NULL, member->peers[peer],
				       member->addrs[peer], member->keys[peer] + 0x10000, FI_UINT32,
				       FI_SUM, &context));
	t_eq(member_error(member->tx, &context), FI_ENOKEY);
	t_eq(fi_cntr_readerr(member->writes), 3);
	t_ok(fi_close(&mr->fid));
	member_silent(member);
}

static void refused(void **state)
{
	(void)state;
	run(refused_part);
}

static void offered_part(struct member *member)
{
	struct fi_atomic_attr attr;
	uint32_t value[2000] = {0};
	size_t count;

	for (unsigned type = FI_INT8; type <= FI_UINT128; type++) {
		t_ok(fi_atomicvalid(member->ep, type, FI_SUM, &count));
		t_holds(count >= 16);
		t_eq(fi_atomicvalid(member->ep, type, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
		t_eq(fi_atomicvalid(member->ep, type, FI_CSWAP, &count), -FI_EOPNOTSUPP);
		t_ok(fi_fetch_atomicvalid(member->ep, type, FI_ATOMIC_READ, &count));
		t_ok(fi_compare_atomicvalid(member->ep, type, FI_CSWAP, &count));
		t_eq(fi_compare_atomicvalid(member->ep, type, FI_SUM, &count), -FI_EOPNOTSUPP);
		t_ok(fi_query_atomic(member->domain, type, FI_CSWAP_NE, &attr, FI_COMPARE_ATOMIC));
		t_eq(attr.count, count);
	}
	t_eq(attr.size, 16);
	t_eq(fi_atomicvalid(member->ep, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
	t_eq(fi_atomicvalid(member->ep, FI_DOUBLE, FI_SUM, NULL), -FI_EINVAL);
	t_eq(fi_query_atomic(member->domain, FI_INT8, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
	t_eq(fi_query_atomic(member->domain, FI_INT8, FI_SUM, &attr,
			     FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC),
	     -FI_EINVAL);
	/* Longer than offered. */
	t_eq(fi_atomic(member->ep, value, 2000, NULL, member->peers[0], member->addrs[0],
		       member->keys[0], FI_UINT32, FI_SUM, NULL),
	     -FI_EINVAL);
	t_eq(fi_atomic(member->ep, value, 1, NULL, member->peers[0], member->addrs[0],
		       member->keys[0], FI_UINT32, FI_CSWAP, NULL),
	     -FI_EOPNOTSUPP);
	member_silent(member);
}

static void offered(void **state)
{
	(void)state;
	run(offered_part);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(pieces),
		cmocka_unit_test(refused),
		cmocka_unit_test(offered),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	events = argc > 2 && !strcmp(argv[2], "events") ? FI_RMA_EVENT : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
