/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_domains.c - parent domains with functions that allocate memory, and objects that a second
 * context imports.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* ---------------------------------------------------------------- parent domains */

/* The context of a parent domain: the answer of its allocator, and its calls. */
struct memory {
	enum { GIVES, LEAVES, REFUSES } answer;
	unsigned allocated, freed;
	void *given[2];
};

static void *give(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	struct memory *memory = context;

	(void)type;
	t_true(pd->context == dev->ctx, "the domain");
	if (memory->answer == LEAVES)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (memory->answer == REFUSES)
		return NULL;
	t_true(memory->allocated < 2, "more than two calls");
	t_eq(posix_memalign(&memory->given[memory->allocated], alignment, size), 0);
	return memory->given[memory->allocated++];
}

static void take_back(struct ibv_pd *pd, void *context, void *pointer, uint64_t type)
{
	struct memory *memory = context;

	(void)pd;
	(void)type;
	t_true(pointer == memory->given[0] || pointer == memory->given[1], "another pointer");
	memory->freed++;
	free(pointer);
}

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct memory *memory)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd,
						   .comp_mask =
							   IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
							   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
						   .alloc = give,
						   .free = take_back,
						   .pd_context = memory};
	struct ibv_pd *parent = ibv_alloc_parent_domain(dev->ctx, &attr);

	t_true(parent, "ibv_alloc_parent_domain: %s", strerror(errno));
	return parent;
}

static void test_allocators(void **state)
{
	(void)state;
	for (int answer = GIVES; answer <= LEAVES; answer++) {
		struct memory memory = {.answer = answer};
		struct ibv_pd *parent = parent_of(dev->pd, &memory);
		struct t_pair p = t_pair(dev, &(struct t_spec){.pd = parent}, NULL, 4096);
		struct ibv_sge to = t_sge(&p.bb, 0, 4096);
		unsigned made = answer == GIVES ? 2 : 0;

		t_eq(memory.allocated, made);
		t_rc(ibv_dealloc_pd(parent), EBUSY);
		/* The memory of both buffers is in the domain below, which is the same one. */
		t_fill(p.ba.addr, 1000, 2);
		t_recv(p.b, 1, &to, 1);
		t_send(p.a, 2, t_sge(&p.ba, 0, 1000));
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
		t_next(p.a->scq, 2, IBV_WC_SUCCESS);
		t_check(p.bb.addr, 1000, 2);
		t_pair_free(&p);
		t_eq(memory.freed, made);
		t_ok(ibv_dealloc_pd(parent));
	}
}

/* Checks that memory is given back, once, and that none is an error. */
static void test_memory(void **state)
{
	struct memory memory = {.answer = GIVES};
	struct ibv_pd *parent = parent_of(dev->pd, &memory);
	struct t_qp *qp = t_qp(dev, &(struct t_spec){.pd = parent});

	(void)state;
	t_eq(memory.allocated, 1);
	t_qp_free(qp);
	t_eq(memory.freed, 1);
	memory.answer = REFUSES;
	errno = 0;
	t_true(!t_qp_try(dev, &(struct t_spec){.pd = parent}) && errno == ENOMEM,
	       "without memory: errno %d", errno);
	t_eq(memory.freed, 1);
	t_ok(ibv_dealloc_pd(parent));
}

/* Checks that a CQ takes a parent domain and no other. */
static void test_cq(void **state)
{
	struct memory memory = {.answer = LEAVES};
	struct ibv_pd *parent = parent_of(dev->pd, &memory);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = dev->pd};
	struct ibv_cq_ex *cq;

	(void)state;
	errno = 0;
	t_true(!ibv_create_cq_ex(dev->ctx, &attr) && errno == EINVAL, "a plain domain: errno %d",
	       errno);
	attr.parent_domain = parent;
	cq = ibv_create_cq_ex(dev->ctx, &attr);
	t_true(cq, "ibv_create_cq_ex: %s", strerror(errno));
	t_rc(ibv_dealloc_pd(parent), EBUSY);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	t_ok(ibv_dealloc_pd(parent));
}

/* ---------------------------------------------------------------- imports */

static struct ibv_context *import(void)
{
	int fd = dup(dev->ctx->cmd_fd);
	struct ibv_context *other = fd < 0 ? NULL : ibv_import_device(fd);

	t_true(other, "ibv_import_device: %s", strerror(errno));
	t_true(other->device == dev->ctx->device && other->cmd_fd == fd, "fields");
	return other;
}

static void test_import(void **state)
{
	struct t_buf buf = t_buf(dev, 4096);
	struct ibv_context *other = import();
	struct ibv_pd *pd = ibv_import_pd(other, dev->pd->handle);
	struct ibv_mr *mr = pd ? ibv_import_mr(pd, buf.mr->handle) : NULL;
	struct t_dev second = *dev;
	struct t_pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	t_true(mr, "imports: %s", strerror(errno));
	t_true(mr->lkey == buf.mr->lkey && mr->rkey == buf.mr->rkey && mr->length == 4096 &&
		       !mr->addr && mr->pd == pd,
	       "fields");
	t_rc(ibv_dealloc_pd(pd), EINVAL);
	t_rc(ibv_dereg_mr(mr), EINVAL);
	/* QPs in the imported domain use its memory, also that which they register. */
	second.ctx = other;
	second.pd = pd;
	p = t_pair(&second, NULL, NULL, 4096);
	t_fill(buf.addr, 4096, 6);
	sge = t_sge(&p.ba, 0, 4096);
	wr = t_rdma(IBV_WR_RDMA_READ, 1, &sge, 1, (uintptr_t)buf.addr, mr->rkey);
	t_post(p.a, &wr);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_check(p.ba.addr, 4096, 6);
	/* They count for the original, and survive the end of the import. */
	t_rc(ibv_dealloc_pd(dev->pd), EBUSY);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	t_pair_free(&p);
	t_ok(ibv_close_device(other));
	t_buf_free(&buf);
}

static void test_import_dm(void **state)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(dev->ctx, &attr), *imported;
	struct ibv_context *other = import();
	char back[4];

	(void)state;
	t_true(dm, "ibv_alloc_dm: %s", strerror(errno));
	imported = ibv_import_dm(other, dm->handle);
	t_true(imported, "ibv_import_dm: %s", strerror(errno));
	t_ok(ibv_memcpy_to_dm(dm, 8, "word", 4));
	t_ok(ibv_memcpy_from_dm(back, imported, 8, 4));
	t_mem_eq(back, "word", 4);
	t_rc(ibv_free_dm(imported), EINVAL);
	ibv_unimport_dm(imported);
	t_ok(ibv_free_dm(dm));
	t_ok(ibv_close_device(other));
}

static void test_import_errors(void **state)
{
	struct ibv_context *other = import();
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx), *imported = ibv_import_pd(other, pd->handle);
	struct t_dev *stranger = t_open();
	struct t_buf buf = t_buf(dev, 4096);

	(void)state;
	errno = 0;
	t_true(!ibv_import_device(STDIN_FILENO) && errno == EOPNOTSUPP, "a descriptor: errno %d",
	       errno);
	errno = 0;
	t_true(!ibv_import_pd(other, 0xffffff) && errno == EINVAL, "an unknown PD: errno %d",
	       errno);
	errno = 0;
	t_true(!ibv_import_dm(other, 0xffffff) && errno == EINVAL, "an unknown DM: errno %d",
	       errno);
	/* The descriptor of another context leads to no object of this one. */
	errno = 0;
	t_true(!ibv_import_pd(stranger->ctx, dev->pd->handle) && errno == EINVAL,
	       "another context: errno %d", errno);
	/* A region belongs to its own domain. */
	errno = 0;
	t_true(imported && !ibv_import_mr(imported, buf.mr->handle) && errno == EINVAL,
	       "another domain: errno %d", errno);
	ibv_unimport_pd(imported);
	t_buf_free(&buf);
	t_close(stranger);
	t_ok(ibv_dealloc_pd(pd));
	t_ok(ibv_close_device(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocators), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_cq),         cmocka_unit_test(test_import),
		cmocka_unit_test(test_import_dm),  cmocka_unit_test(test_import_errors),
	};

	return cmocka_run_group_tests_name("domains", tests, setup, t_teardown);
}
