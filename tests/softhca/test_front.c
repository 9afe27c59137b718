/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_front.c - the objects without work queues (PDs, domains, address handles, channels),
 * refusals, and fork. Run it as `softhca run -- test_front`.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include "check.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

/* libibverbs exports these for providers, without a public header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_port_attr port;

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;

	ibv_free_device_list(list);
	return verbs;
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
	struct ibv_pd *own = ibv_alloc_pd(ctx);
	struct ibv_ah *ah;

	(void)state;
	t_holds(own != NULL);
	t_holds(own->context == ctx);
	ah = ibv_create_ah(own, &attr);
	t_holds(ah != NULL);
	/* An AH exists in user memory only. */
	t_eq(ibv_dealloc_pd(own), 0);
	t_eq(ibv_destroy_ah(ah), 0);
}

static void test_parent_domain(void **state)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_pd *plain = ibv_alloc_pd(ctx);
	struct ibv_td *td = ibv_alloc_td(ctx, &td_attr);
	struct ibv_pd *domain;

	(void)state;
	t_holds(plain != NULL);
	t_holds(td != NULL);
	errno = 0;
	t_holds(ibv_alloc_parent_domain(ctx, &attr) == NULL);
	t_eq(errno, EINVAL);
	attr.pd = plain;
	attr.td = td;
	attr.comp_mask = 1u << 31;
	t_holds(ibv_alloc_parent_domain(ctx, &attr) == NULL);
	t_eq(errno, EINVAL);
	attr.comp_mask = 0;
	domain = ibv_alloc_parent_domain(ctx, &attr);
	t_holds(domain != NULL);
	t_eq(ibv_dealloc_pd(plain), EBUSY);
	t_eq(ibv_dealloc_td(td), EBUSY);
	t_eq(ibv_dealloc_pd(domain), 0);
	t_eq(ibv_dealloc_td(td), 0);
	t_eq(ibv_dealloc_pd(plain), 0);
	td_attr.comp_mask = 1;
	t_holds(ibv_alloc_td(ctx, &td_attr) == NULL);
	t_eq(errno, EINVAL);
}

static void refuse_ah(struct ibv_ah_attr *attr, int error)
{
	errno = 0;
	t_holds(ibv_create_ah(pd, attr) == NULL);
	t_eq(errno, error);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {.dlid = 0xbeef & 0x7fff, .port_num = 1, .sl = 15};
	struct ibv_ah *ah;

	(void)state;
	/* No port has that LID, but only a send finds that out. */
	ah = ibv_create_ah(pd, &attr);
	t_holds(ah != NULL);
	t_holds(ah->pd == pd);
	t_holds(ah->context == ctx);
	t_eq(ibv_destroy_ah(ah), 0);
	attr.port_num = 0;
	refuse_ah(&attr, EINVAL);
	attr.port_num = 2;
	refuse_ah(&attr, EINVAL);
	attr.port_num = 1;
	attr.is_global = 1;
	attr.grh.sgid_index = 8;
	refuse_ah(&attr, EINVAL);
	attr.grh.sgid_index = 1; /* an empty entry */
	refuse_ah(&attr, ENODATA);
	attr.grh.sgid_index = 0;
	attr.grh.dgid.raw[0] = 0xff;
	ah = ibv_create_ah(pd, &attr);
	t_holds(ah != NULL);
	t_eq(ibv_destroy_ah(ah), 0);
}

static void test_ah_from_wc(void **state)
{
	struct ibv_wc wc = {.slid = 0x123, .sl = 3, .dlid_path_bits = 0};
	struct ibv_grh grh = {.hop_limit = 64};
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	(void)state;
	t_eq(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &attr), 0);
	t_eq(attr.dlid, 0x123);
	t_eq(attr.sl, 3);
	t_eq(attr.port_num, 1);
	t_eq(attr.is_global, 0);

	wc.wc_flags = IBV_WC_GRH;
	grh.version_tclass_flow = htobe32(6u << 28 | 0x5au << 20 | 0x12345);
	grh.sgid.raw[15] = 7;
	t_eq(ibv_query_gid(ctx, 1, 0, &grh.dgid), 0);
	t_eq(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	t_eq(attr.is_global, 1);
	t_mem_eq(&attr.grh.dgid, &grh.sgid, sizeof(grh.sgid));
	t_eq(attr.grh.sgid_index, 0);
	t_eq(attr.grh.traffic_class, 0x5a);
	t_eq(attr.grh.flow_label, 0x12345);
	t_eq(attr.grh.hop_limit, 64);

	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
	t_holds(ah != NULL);
	t_eq(ibv_destroy_ah(ah), 0);
	t_holds(ibv_create_ah_from_wc(pd, &wc, &grh, 2) == NULL);
	/* The GRH names a GID of another port. */
	grh.dgid.raw[15] ^= 1;
	t_holds(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr) != 0);
	t_holds(ibv_create_ah_from_wc(pd, &wc, &grh, 1) == NULL);
}

static void expect_idle(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	t_eq(poll(&p, 1, 0), 0);
	t_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	t_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void test_async_fd(void **state)
{
	struct ibv_context *verbs = open_device();
	struct ibv_async_event event;

	(void)state;
	t_holds(verbs != NULL);
	expect_idle(verbs->async_fd);
	errno = 0;
	t_eq(ibv_get_async_event(verbs, &event), -1);
	t_eq(errno, EAGAIN);
	t_eq(ibv_close_device(verbs), 0);
}

static void test_channel(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq, *event_cq;
	void *event_context;

	(void)state;
	t_holds(channel != NULL);
	t_holds(channel->context == ctx);
	t_eq(channel->refcnt, 0);
	expect_idle(channel->fd);
	errno = 0;
	t_eq(ibv_get_cq_event(channel, &event_cq, &event_context), -1);
	t_eq(errno, EAGAIN);

	cq = ibv_create_cq(ctx, 4, NULL, channel, 0);
	t_holds(cq != NULL);
	t_eq(ibv_destroy_comp_channel(channel), EBUSY);
	t_eq(ibv_destroy_cq(cq), 0);
	t_eq(ibv_destroy_comp_channel(channel), 0);
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
	t_holds(cq != NULL);
	ud = make_qp(cq, IBV_QPT_UD);
	rc = make_qp(cq, IBV_QPT_RC);
	t_holds(ud != NULL);
	t_holds(rc != NULL);
	t_eq(ibv_attach_mcast(ud, &unicast, 0xc001), EINVAL);
	t_eq(ibv_attach_mcast(rc, &group, 0xc001), EINVAL);
	t_eq(ibv_detach_mcast(ud, &group, 0xc001), EINVAL);
	t_eq(ibv_attach_mcast(ud, &group, 0xc001), 0);
	t_eq(ibv_attach_mcast(ud, &group, 0xc001), 0);
	t_eq(ibv_destroy_qp(ud), EBUSY);
	t_eq(ibv_detach_mcast(ud, &group, 0xc001), 0);
	t_eq(ibv_detach_mcast(ud, &group, 0xc001), EINVAL);
	t_eq(ibv_destroy_qp(ud), 0);
	t_eq(ibv_destroy_qp(rc), 0);
	t_eq(ibv_destroy_cq(cq), 0);
}

static void expect_refused(const void *object)
{
	t_holds(object == NULL);
	t_eq(errno, EOPNOTSUPP);
	errno = 0;
}

static void test_refused_objects(void **state)
{
	struct ibv_wq_init_attr wq = {0};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_action_esp_attr esp = {0};

	(void)state;
	errno = 0;
	expect_refused(ibv_import_device(0));
	expect_refused(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE));
	expect_refused(ibv_create_wq(ctx, &wq));
	expect_refused(ibv_create_rwq_ind_table(ctx, &table));
	expect_refused(ibv_create_counters(ctx, &counters));
	expect_refused(ibv_create_flow_action_esp(ctx, &esp));
}

static void test_refused_calls(void **state)
{
	struct ibv_qp qp = {.context = ctx, .pd = pd};
	struct ibv_ece ece = {.vendor_id = 1};
	struct ibv_flow_attr flow = {0};
	struct ibv_qp_rate_limit_attr rate = {0};
	struct ibv_ah_attr ah = {.port_num = 1};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vid;

	(void)state;
	t_eq(ibv_set_ece(&qp, &ece), EOPNOTSUPP);
	t_eq(ibv_query_ece(&qp, &ece), EOPNOTSUPP);
	t_eq(ece.vendor_id, 0);
	t_eq(ibv_modify_qp_rate_limit(&qp, &rate), EOPNOTSUPP);
	t_eq(ibv_resolve_eth_l2_from_gid(ctx, &ah, mac, &vid), EOPNOTSUPP);
	errno = 0;
	expect_refused(ibv_create_flow(&qp, &flow));
}

static void test_fork_api(void **state)
{
	(void)state;
	t_eq(ibv_fork_init(), 0);
	t_eq(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	t_eq(ibv_dontfork_range(&port, sizeof(port)), 0);
	t_eq(ibv_dofork_range(&port, sizeof(port)), 0);
}

/* Opens a device in a child and uses it. Returns its exit status. */
static int use_device(void)
{
	struct ibv_context *verbs = open_device();
	struct ibv_pd *own = verbs ? ibv_alloc_pd(verbs) : NULL;
	struct ibv_comp_channel *channel = own ? ibv_create_comp_channel(verbs) : NULL;

	if (!channel)
		return 1;
	if (ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(own) || ibv_close_device(verbs))
		return 2;
	return 0;
}

static void test_fork(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	child = fork();
	t_holds(child >= 0);
	if (child == 0)
		_exit(use_device());
	t_eq(waitpid(child, &status, 0), child);
	t_holds(WIFEXITED(status));
	t_eq(WEXITSTATUS(status), 0);
	/* The parent works as before. */
	t_eq(use_device(), 0);
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
		t_eq(pthread_create(&threads[i], NULL, open_and_close, &failures), 0);
	for (size_t i = 0; i < 4; i++)
		t_eq(pthread_join(threads[i], NULL), 0);
	t_eq(failures, 0);
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
