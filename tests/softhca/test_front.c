/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_front.c - the objects without work queues (PDs, domains, address handles, channels), what is
 * refused and how, and fork. Run it as `softhca run -- test_front`.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

/* Exported by libibverbs for providers; not in a public header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_port_attr port;

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;

	ibv_free_device_list(list);
	return c;
}

static int setup(void **state)
{
	(void)state;
	ctx = open_device();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	return pd ? ibv_query_port(ctx, 1, &port) : -1;
}

static int teardown(void **state)
{
	(void)state;
	return pd && (ibv_dealloc_pd(pd) || ibv_close_device(ctx));
}

static void test_pd(void **state)
{
	struct ibv_ah_attr attr = {.dlid = port.lid, .port_num = 1};
	struct ibv_pd *a = ibv_alloc_pd(ctx);
	struct ibv_ah *ah;

	(void)state;
	assert_non_null(a);
	assert_ptr_equal(a->context, ctx);
	ah = ibv_create_ah(a, &attr);
	assert_non_null(ah);
	/* An AH is the user's memory only. */
	assert_int_equal(ibv_dealloc_pd(a), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void test_parent_domain(void **state)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_pd *plain = ibv_alloc_pd(ctx);
	struct ibv_td *td = ibv_alloc_td(ctx, &td_attr);
	struct ibv_pd *domain;

	(void)state;
	assert_non_null(plain);
	assert_non_null(td);
	errno = 0;
	assert_null(ibv_alloc_parent_domain(ctx, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = plain;
	attr.td = td;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_null(ibv_alloc_parent_domain(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = 0;
	domain = ibv_alloc_parent_domain(ctx, &attr);
	assert_non_null(domain);
	assert_int_equal(ibv_dealloc_pd(plain), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(plain), 0);
	td_attr.comp_mask = 1;
	assert_null(ibv_alloc_td(ctx, &td_attr));
	assert_int_equal(errno, EINVAL);
}

static void refuse_ah(struct ibv_ah_attr *attr)
{
	errno = 0;
	assert_null(ibv_create_ah(pd, attr));
	assert_int_equal(errno, EINVAL);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 0xbeef & 0x7fff, .port_num = 1, .sl = 15};
	struct ibv_ah *ah;

	(void)state;
	/* Nobody has that LID: only sending will tell. */
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_ptr_equal(ah->context, ctx);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	attr.port_num = 0;
	refuse_ah(&attr);
	attr.port_num = 2;
	refuse_ah(&attr);
	attr.port_num = 1;
	attr.sl = 16;
	refuse_ah(&attr);
	attr.sl = 0;
	attr.is_global = 1;
	attr.grh.sgid_index = 8;
	refuse_ah(&attr);
	attr.grh.sgid_index = 1; /* an empty entry */
	refuse_ah(&attr);
	attr.grh.sgid_index = 0;
	attr.grh.dgid.raw[0] = 0xff;
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void test_ah_from_wc(void **state)
{
	struct ibv_wc wc = {.slid = 0x123, .sl = 3, .dlid_path_bits = 0};
	struct ibv_grh grh = {.hop_limit = 64};
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	(void)state;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.dlid, 0x123);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.is_global, 0);

	wc.wc_flags = IBV_WC_GRH;
	grh.version_tclass_flow = htobe32(6u << 28 | 0x5au << 20 | 0x12345);
	grh.sgid.raw[15] = 7;
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &grh.dgid), 0);
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(&attr.grh.dgid, &grh.sgid, sizeof(grh.sgid));
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.traffic_class, 0x5a);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.hop_limit, 64);

	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 2));
	/* It came to a GID that is not ours. */
	grh.dgid.raw[15] ^= 1;
	assert_int_not_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
}

static void assert_idle(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void test_async_fd(void **state)
{
	struct ibv_context *c = open_device();
	struct ibv_async_event event;

	(void)state;
	assert_non_null(c);
	assert_idle(c->async_fd);
	errno = 0;
	assert_int_equal(ibv_get_async_event(c, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_close_device(c), 0);
}

static void test_channel(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq, *event_cq;
	void *event_context;

	(void)state;
	assert_non_null(channel);
	assert_ptr_equal(channel->context, ctx);
	assert_int_equal(channel->refcnt, 0);
	assert_idle(channel->fd);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(channel, &event_cq, &event_context), -1);
	assert_int_equal(errno, EAGAIN);

	cq = ibv_create_cq(ctx, 4, NULL, channel, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	return ibv_create_qp(pd, &attr);
}

static void test_mcast(void **state)
{
	union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, [15] = 1}};
	union ibv_gid unicast = {.raw = {0xfe, 0x80, [15] = 1}};
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp *ud, *rc;

	(void)state;
	assert_non_null(cq);
	ud = make_qp(cq, IBV_QPT_UD);
	rc = make_qp(cq, IBV_QPT_RC);
	assert_non_null(ud);
	assert_non_null(rc);
	assert_int_equal(ibv_attach_mcast(ud, &unicast, 0xc001), EINVAL);
	assert_int_equal(ibv_attach_mcast(rc, &group, 0xc001), EINVAL);
	assert_int_equal(ibv_detach_mcast(ud, &group, 0xc001), EINVAL);
	assert_int_equal(ibv_attach_mcast(ud, &group, 0xc001), 0);
	assert_int_equal(ibv_attach_mcast(ud, &group, 0xc001), 0);
	assert_int_equal(ibv_destroy_qp(ud), EBUSY);
	assert_int_equal(ibv_detach_mcast(ud, &group, 0xc001), 0);
	assert_int_equal(ibv_detach_mcast(ud, &group, 0xc001), EINVAL);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void assert_refused(const void *object)
{
	assert_null(object);
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
}

static void test_refused_objects(void **state)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_action_esp_attr esp = {0};

	(void)state;
	errno = 0;
	assert_refused(ibv_import_device(0));
	assert_refused(ibv_import_pd(ctx, 0));
	assert_refused(ibv_import_mr(pd, 0));
	assert_refused(ibv_import_dm(ctx, 0));
	assert_refused(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE));
	assert_refused(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	assert_refused(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	assert_refused(ibv_alloc_dm(ctx, &dm));
	assert_refused(ibv_create_wq(ctx, &wq));
	assert_refused(ibv_create_rwq_ind_table(ctx, &table));
	assert_refused(ibv_create_counters(ctx, &counters));
	assert_refused(ibv_create_flow_action_esp(ctx, &esp));
}

static void test_refused_calls(void **state)
{
	struct ibv_mw mw = {.context = ctx, .pd = pd, .type = IBV_MW_TYPE_1};
	struct ibv_qp qp = {.context = ctx, .pd = pd};
	struct ibv_mw_bind bind = {0};
	struct ibv_ece ece = {.vendor_id = 1};
	struct ibv_flow_attr flow = {0};
	struct ibv_qp_rate_limit_attr rate = {0};
	struct ibv_ah_attr ah = {.port_num = 1};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	(void)state;
	assert_int_equal(ibv_bind_mw(&qp, &mw, &bind), EOPNOTSUPP);
	assert_int_equal(ibv_dealloc_mw(&mw), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(&qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(&qp, &ece), EOPNOTSUPP);
	assert_int_equal(ece.vendor_id, 0);
	assert_int_equal(ibv_modify_qp_rate_limit(&qp, &rate), EOPNOTSUPP);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &ah, mac, &vid), EOPNOTSUPP);
	errno = 0;
	assert_refused(ibv_create_flow(&qp, &flow));
}

static void test_fork_api(void **state)
{
	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_dontfork_range(&port, sizeof(port)), 0);
	assert_int_equal(ibv_dofork_range(&port, sizeof(port)), 0);
}

/* Exit status of a child that opens a device of its own and uses it. */
static int use_device(void)
{
	struct ibv_context *c = open_device();
	struct ibv_pd *p = c ? ibv_alloc_pd(c) : NULL;
	struct ibv_comp_channel *channel = p ? ibv_create_comp_channel(c) : NULL;

	if (!channel)
		return 1;
	if (ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(p) || ibv_close_device(c))
		return 2;
	return 0;
}

static void test_fork(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_device());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The parent is as before. */
	assert_int_equal(use_device(), 0);
}

static void *open_and_close(void *failures)
{
	for (int i = 0; i < 50; i++)
		if (use_device())
			__atomic_fetch_add((int *)failures, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];
	int failures = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &failures), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pd),
		cmocka_unit_test(test_parent_domain),
		cmocka_unit_test(test_ah),
		cmocka_unit_test(test_ah_from_wc),
		cmocka_unit_test(test_async_fd),
		cmocka_unit_test(test_channel),
		cmocka_unit_test(test_mcast),
		cmocka_unit_test(test_refused_objects),
		cmocka_unit_test(test_refused_calls),
		cmocka_unit_test(test_fork_api),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
