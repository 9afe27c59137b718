/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes of peers' memory: sizes, pieces, injected ones, data for the target's queue,
 * arguments that are wrong; or one of more than 4 GiB.
 *
 * test_rma NODES [events | long], under "softhca run --nodes NODES"
 */
#define _GNU_SOURCE 1
#include "member.h"

#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NPROCS 2
#define K_DONE MEMBER_KEY_FREE

static unsigned nodes[NPROCS];
static uint64_t events; /* FI_RMA_EVENT, or 0: targets count what peers do */

typedef void part_fn(struct member *member, unsigned peer);

static void part(unsigned me, void *arg)
{
	part_fn *fn = *(part_fn **)arg;
	struct member member;

	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED | events, 0);
	fn(&member, 1 - me);
	member_close(&member);
}

static void run(part_fn *fn)
{
	procs_run(NPROCS, nodes, part, &fn);
}

/* Both processes write into the other one's memory and read it back. */
static void sizes_part(struct member *member, unsigned peer)
{
	static const size_t sizes[] = {0, 1, 7, 64, 4096, 4097, 65536, MEMBER_BYTES};
	unsigned char *own = malloc(MEMBER_BYTES), *back = malloc(MEMBER_BYTES);
	struct fi_context context;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t len = sizes[i];
		struct fi_cq_tagged_entry entry;

		member_fill(own, len, i);
		memset(back, 0, len);
		member_start(member, fi_write(member->ep, own, len, NULL, member->peers[peer],
					      member->addrs[peer], member->keys[peer], &context));
		entry = member_completion(member->tx, &context);
		t_eq(entry.flags & (FI_RMA | FI_WRITE), FI_RMA | FI_WRITE);
		member_start(member, fi_read(member->ep, back, len, NULL, member->peers[peer],
					     member->addrs[peer], member->keys[peer], &context));
		entry = member_completion(member->tx, &context);
		t_eq(entry.flags & (FI_RMA | FI_READ), FI_RMA | FI_READ);
		member_check(back, len, i);
	}
	t_eq(fi_cntr_read(member->writes), sizeof(sizes) / sizeof(*sizes));
	t_eq(fi_cntr_read(member->reads), sizeof(sizes) / sizeof(*sizes));
	if (events) {
		t_ok(fi_cntr_wait(member->remote_writes, sizeof(sizes) / sizeof(*sizes), -1));
		t_ok(fi_cntr_wait(member->remote_reads, sizeof(sizes) / sizeof(*sizes), -1));
		t_ok(fi_cntr_wait(member->touched, 2 * sizeof(sizes) / sizeof(*sizes), -1));
	}
	member_silent(member);
	member_check(member->memory, MEMBER_BYTES, sizeof(sizes) / sizeof(*sizes) - 1);
	free(own);
	free(back);
}

static void sizes(void **state)
{
	(void)state;
	run(sizes_part);
}

/* Pieces that end at different places on both sides, with a registration of some. */
static void pieces_part(struct member *member, unsigned peer)
{
	unsigned char *own = malloc(30000), *back = calloc(1, 30000);
	struct iovec from[] = {{own, 10}, {own + 10, 0}, {own + 10, 20000}, {own + 20010, 9990}};
	struct iovec to[] = {{back, 15000}, {back + 15000, 1}, {back + 15001, 14999}};
	struct fi_rma_iov there[] = {
		{member->addrs[peer] + 500, 9000, member->keys[peer]},
		{member->addrs[peer] + 20000, 21000, member->keys[peer]},
	};
	struct fi_context context;
	void *desc[4] = {NULL};
	struct fid_mr *mr;
	struct fi_msg_rma msg = {
		.desc = desc,
		.addr = member->peers[peer],
		.rma_iov = there,
		.rma_iov_count = 2,
		.context = &context,
	};

	member_fill(own, 30000, 3);
	t_ok(fi_mr_reg(member->domain, own, 30000, FI_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	desc[2] = fi_mr_desc(mr);
	msg.msg_iov = from;
	msg.iov_count = 4;
	member_start(member, fi_writemsg(member->ep, &msg, FI_COMPLETION));
	member_completion(member->tx, &context);
	msg.msg_iov = to;
	msg.iov_count = 3;
	desc[2] = NULL;
	member_start(member, fi_readmsg(member->ep, &msg, FI_COMPLETION));
	member_completion(member->tx, &context);
	member_check(back, 30000, 3);
	t_ok(fi_close(&mr->fid));
	member_silent(member);
	free(own);
	free(back);
}

static void pieces(void **state)
{
	(void)state;
	run(pieces_part);
}

/* The buffer of an injected write is the user's at once, and only counters tell of its end. */
static void injected_part(struct member *member, unsigned peer)
{
	size_t len = member->info->tx_attr->inject_size;
	unsigned char *own = malloc(len);

	for (unsigned i = 0; i < 100; i++) {
		member_fill(own, len, i);
		member_start(member,
			     fi_inject_write(member->ep, own, len, member->peers[peer],
					     member->addrs[peer] + i * len, member->keys[peer]));
		memset(own, 0xff, len);
	}
	t_ok(fi_cntr_wait(member->writes, 100, -1));
	member_silent(member);
	for (unsigned i = 0; i < 100; i++)
		member_check(member->memory + i * len, len, i);
	t_eq(fi_inject_write(member->ep, own, len + 1, member->peers[peer], member->addrs[peer],
			     member->keys[peer]),
	     -FI_EINVAL);
	free(own);
}

static void injected(void **state)
{
	(void)state;
	run(injected_part);
}

/* Data for the target's queue come when the memory has been written. */
static void data_part(struct member *member, unsigned peer)
{
	unsigned char *own = malloc(100000);
	struct fi_context context;

	for (unsigned i = 0; i < 20; i++) {
		size_t len = i % 2 ? 100000 : 16;
		struct fi_cq_tagged_entry entry;

		member_fill(own, len, i);
		member_start(member,
			     fi_writedata(member->ep, own, len, NULL, 0x123456789abcdef0 + i,
					  member->peers[peer], member->addrs[peer],
					  member->keys[peer], &context));
		member_completion(member->tx, &context);
		entry = member_completion(member->rx, NULL);
		t_eq(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		t_eq(entry.data, 0x123456789abcdef0 + i);
		t_eq(entry.len, len);
		member_check(member->memory, len, i);
		procs_barrier();
	}
	member_start(member, fi_inject_writedata(member->ep, own, 8, 77, member->peers[peer],
						 member->addrs[peer], member->keys[peer]));
	t_eq(member_completion(member->rx, NULL).data, 77);
	member_silent(member);
	free(own);
}

static void data(void **state)
{
	(void)state;
	run(data_part);
}

#define PIECE  ((size_t)16 << 20)
#define PIECES 257 /* more than 4 GiB */

/* Returns an address range of PIECES times PIECE bytes, all of them the same memory. */
static unsigned char *map_long(void)
{
	int fd = memfd_create("long", MFD_CLOEXEC);
	unsigned char *at = mmap(NULL, PIECES * PIECE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	t_holds(fd >= 0 && at != MAP_FAILED);
	t_ok(ftruncate(fd, PIECE));
	for (unsigned i = 0; i < PIECES; i++)
		t_holds(mmap(at + i * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			     fd, 0) != MAP_FAILED);
	close(fd);
	return at;
}

/* A write of more than 4 GiB. */
static void long_part(struct member *member, unsigned peer)
{
	unsigned char *memory = map_long();
	struct fi_cq_tagged_entry entry;
	struct fi_context context;
	struct fid_mr *mr;

	t_ok(fi_mr_reg(member->domain, memory, PIECES * PIECE, FI_REMOTE_WRITE, 0, 0, 0, &mr,
		       NULL));
	procs_put(K_DONE, (uintptr_t)memory);
	procs_put(K_DONE + 1, fi_mr_key(mr));
	if (member->me == 0) {
		member_fill(memory, PIECE, 7);
		member_start(member, fi_writedata(member->ep, memory, PIECES * PIECE, NULL, 12,
						  member->peers[peer], procs_get(peer, K_DONE),
						  procs_get(peer, K_DONE + 1), &context));
		member_completion(member->tx, &context);
	} else {
		entry = member_completion(member->rx, NULL);
		t_eq(entry.len, PIECES * PIECE);
		t_eq(entry.data, 12);
		member_check(memory, PIECE, 7);
	}
	member_silent(member);
	t_ok(fi_close(&mr->fid));
	munmap(memory, PIECES * PIECE);
}

static void very_long(void **state)
{
	(void)state;
	run(long_part);
}

static void wrong_part(struct member *member, unsigned peer)
{
	struct iovec iov = {member->memory, 8}, two[2] = {{member->memory, SIZE_MAX}, iov};
	struct fi_rma_iov there = {member->addrs[peer], 9, member->keys[peer]};
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = member->peers[peer],
		.rma_iov = &there,
		.rma_iov_count = 1,
	};

	t_eq(fi_writemsg(member->ep, &msg, 0), -FI_EINVAL); /* other lengths */
	there.len = 8;
	t_eq(fi_readmsg(member->ep, &msg, FI_INJECT), -FI_EINVAL);
	t_eq(fi_writemsg(member->ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	msg.addr = 12345;
	t_eq(fi_writemsg(member->ep, &msg, 0), -FI_EINVAL); /* no such peer */
	msg.addr = member->peers[peer];
	there.key = UINT64_MAX;
	t_eq(member_try(member, fi_writemsg(member->ep, &msg, 0)), -FI_ENOKEY);
	/* Longer than max_msg_size, or than a number can be. */
	t_eq(fi_write(member->ep, member->memory, member->info->ep_attr->max_msg_size + 1, NULL,
		      member->peers[peer], member->addrs[peer], member->keys[peer], NULL),
	     -FI_EMSGSIZE);
	t_eq(fi_send(member->ep, member->memory, member->info->ep_attr->max_msg_size + 1, NULL,
		     member->peers[peer], NULL),
	     -FI_EMSGSIZE);
	t_eq(fi_readv(member->ep, two, NULL, 2, member->peers[peer], member->addrs[peer],
		      member->keys[peer], NULL),
	     -FI_EMSGSIZE);
	t_eq(fi_sendv(member->ep, two, NULL, 2, member->peers[peer], NULL), -FI_EMSGSIZE);
	member_silent(member);
}

static void wrong(void **state)
{
	(void)state;
	run(wrong_part);
}

/* There are no triggered operations, in either form. */
static void triggered_part(struct member *member, unsigned peer)
{
	struct fi_triggered_context context = {
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = {member->writes, 1},
	};
	struct iovec iov = {member->memory, 8};
	struct fi_rma_iov there = {member->addrs[peer], 8, member->keys[peer]};
	struct fi_ioc item = {member->memory, 1};
	struct fi_rma_ioc item_there = {member->addrs[peer], 1, member->keys[peer]};
	struct fi_msg_rma write = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = member->peers[peer],
		.rma_iov = &there,
		.rma_iov_count = 1,
		.context = &context,
	};
	struct fi_msg_atomic add = {
		.msg_iov = &item,
		.iov_count = 1,
		.addr = member->peers[peer],
		.rma_iov = &item_there,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = &context,
	};
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = member->peers[peer],
		.context = &context,
	};
	struct fi_op_rma deferred_write = {member->ep, write, 0};
	struct fi_deferred_work work = {
		.threshold = 1,
		.triggering_cntr = member->writes,
		.op_type = FI_OP_WRITE,
		.op.rma = &deferred_write,
	};

	t_eq(fi_writemsg(member->ep, &write, FI_TRIGGER), -FI_ENOSYS);
	t_eq(fi_readmsg(member->ep, &write, FI_TRIGGER), -FI_ENOSYS);
	t_eq(fi_atomicmsg(member->ep, &add, FI_TRIGGER), -FI_ENOSYS);
	t_eq(fi_sendmsg(member->ep, &msg, FI_TRIGGER), -FI_ENOSYS);
	t_eq(fi_recvmsg(member->ep, &msg, FI_TRIGGER), -FI_ENOSYS);
	t_eq(fi_control(&member->domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	t_eq(fi_control(&member->domain->fid, FI_CANCEL_WORK, &work), -FI_ENOSYS);
	t_eq(fi_control(&member->domain->fid, FI_FLUSH_WORK, NULL), -FI_ENOSYS);
	member_silent(member);
}

static void triggered(void **state)
{
	(void)state;
	run(triggered_part);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes), cmocka_unit_test(pieces), cmocka_unit_test(injected),
		cmocka_unit_test(data),  cmocka_unit_test(wrong),  cmocka_unit_test(triggered),
	};
	const struct CMUnitTest long_tests[] = {cmocka_unit_test(very_long)};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	if (argc > 2 && !strcmp(argv[2], "long"))
		return cmocka_run_group_tests(long_tests, NULL, NULL);
	events = argc > 2 && !strcmp(argv[2], "events") ? FI_RMA_EVENT : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
