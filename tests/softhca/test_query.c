/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_query.c - every query of a device, with the options at their defaults. Run it as
 * `softhca run -- test_query`.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include "device.h"
#include "check.h"

#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Functions that no public header declares, but that clients call. GID type 0 is InfiniBand or RoCE
 * v1. */
const char *ibv_get_sysfs_path(void);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);

#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))

static void test_list(void **state)
{
	struct ibv_device **a, **b;
	int n = -1;

	(void)state;
	a = ibv_get_device_list(&n);
	b = ibv_get_device_list(NULL);
	t_holds(a != NULL);
	t_holds(b != NULL);
	t_eq(n, 1);
	t_holds(a[0] != NULL);
	t_holds(a[1] == NULL);
	t_holds(a[0] == b[0]);
	ibv_free_device_list(a);
	/* Still valid: b has the device, and the context holds it. */
	t_holds(b[0] == t_ctx->device);
	ibv_free_device_list(b);
	t_str_eq(ibv_get_device_name(t_ctx->device), "softhca0");
}

static void test_device(void **state)
{
	struct ibv_device *dev = t_ctx->device;
	char path[PATH_MAX];
	struct stat st;

	(void)state;
	t_str_eq(dev->name, "softhca0");
	t_str_eq(dev->dev_name, "uverbs0");
	t_eq(dev->node_type, IBV_NODE_CA);
	t_eq(dev->transport_type, IBV_TRANSPORT_IB);
	t_eq(ibv_get_device_index(dev), 0);
	t_holds(ibv_get_device_guid(dev) != 0);

	snprintf(path, sizeof(path), "%s/class/infiniband", ibv_get_sysfs_path());
	t_eq(stat(path, &st), 0);
	t_holds(S_ISDIR(st.st_mode));
	t_eq(strncmp(dev->ibdev_path, path, strlen(path)), 0);
	t_str_eq(dev->ibdev_path + strlen(path), "/softhca0");
	t_eq(stat(dev->ibdev_path, &st), 0);
	t_eq(stat(dev->dev_path, &st), 0);
}

static void test_device_node(void **state)
{
	struct stat st;

	(void)state;
	t_eq(stat("/dev/infiniband/uverbs0", &st), 0);
	t_holds(S_ISCHR(st.st_mode));
	t_eq(major(st.st_rdev), 231);
	t_eq(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
	t_eq(access("/dev/infiniband/uverbs0", X_OK), -1);
	t_eq(errno, EACCES);
	/* Other requests go to the system. */
	t_eq(stat("/dev/infiniband/uverbs0x", &st), -1);
	t_eq(errno, ENOENT);
	t_eq(access("/dev/infiniband/uverbs0x", R_OK), -1);
	t_eq(errno, ENOENT);
	t_eq(access("/dev/null", R_OK | W_OK), 0);
	t_eq(stat("/dev/null", &st), 0);
	t_eq(major(st.st_rdev), 1);
	t_eq(stat("/", &st), 0);
	t_holds(S_ISDIR(st.st_mode));
}

static void test_context(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *more[3];

	(void)state;
	t_holds(fcntl(t_ctx->cmd_fd, F_GETFD) >= 0);
	t_holds(fcntl(t_ctx->async_fd, F_GETFD) >= 0);
	t_holds(t_ctx->num_comp_vectors >= 2);
	t_holds(t_ctx->abi_compat == __VERBS_ABI_IS_EXTENDED);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		more[i] = ibv_open_device(list[0]);
		t_holds(more[i] != NULL);
		t_holds(more[i] != t_ctx);
		t_holds(more[i]->async_fd != t_ctx->async_fd);
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		t_eq(ibv_close_device(more[i]), 0);
	ibv_free_device_list(list);
}

/* A limit of struct ibv_device_attr that is an int. */
#define INT_LIMIT(member, value)                                           \
	{                                                                  \
#member, offsetof(struct ibv_device_attr, member), (value) \
	}

static const struct {
	const char *name;
	size_t offset;
	int value;
} int_limits[] = {
	INT_LIMIT(max_qp, 131072),
	INT_LIMIT(max_qp_wr, 32768),
	INT_LIMIT(max_sge, 30),
	INT_LIMIT(max_sge_rd, 30),
	INT_LIMIT(max_cq, 65536),
	INT_LIMIT(max_cqe, 4194303),
	INT_LIMIT(max_mr, 1048576),
	INT_LIMIT(max_mw, 131072),
	INT_LIMIT(max_pd, 8388608),
	INT_LIMIT(max_qp_rd_atom, 16),
	INT_LIMIT(max_qp_init_rd_atom, 16),
	INT_LIMIT(max_res_rd_atom, 16 * 131072),
	INT_LIMIT(max_mcast_grp, 1024),
	INT_LIMIT(max_mcast_qp_attach, 1024),
	INT_LIMIT(max_total_mcast_qp_attach, 1024),
	INT_LIMIT(max_ah, INT_MAX),
	INT_LIMIT(max_srq, 131072),
	INT_LIMIT(max_srq_wr, 32767),
	INT_LIMIT(max_srq_sge, 31),
	/* Features that the device lacks. */
	INT_LIMIT(max_fmr, 0),
	INT_LIMIT(max_ee, 0),
	INT_LIMIT(max_ee_rd_atom, 0),
	INT_LIMIT(max_ee_init_rd_atom, 0),
	INT_LIMIT(max_rdd, 0),
	INT_LIMIT(max_raw_ipv6_qp, 0),
	INT_LIMIT(max_raw_ethy_qp, 0),
};

static void test_query_device(void **state)
{
	const unsigned int flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				   IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				   IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
				   IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct ibv_device_attr a;

	(void)state;
	memset(&a, 0xa5, sizeof(a));
	t_eq(ibv_query_device(t_ctx, &a), 0);
	t_holds(strlen(a.fw_ver) > 0 && strlen(a.fw_ver) < sizeof(a.fw_ver));
	t_holds(a.node_guid == ibv_get_device_guid(t_ctx->device));
	t_holds(a.sys_image_guid == a.node_guid);
	t_holds(a.max_mr_size == UINT64_MAX);
	t_holds(a.page_size_cap & 4096);
	t_eq(a.vendor_id, 0x02c9);
	t_eq(a.vendor_part_id, 4119);
	t_eq(a.hw_ver, 0);
	t_eq(a.device_cap_flags, flags);
	t_eq(a.atomic_cap, IBV_ATOMIC_HCA);
	t_eq(a.max_pkeys, 1);
	t_eq(a.phys_port_cnt, 1);
	for (size_t i = 0; i < ARRAY_LEN(int_limits); i++) {
		int value = *(const int *)((const char *)&a + int_limits[i].offset);

		t_true(value == int_limits[i].value, "%s is %d, not %d", int_limits[i].name, value,
		       int_limits[i].value);
	}
}

/* Checks that programs that ask each adapter for features of mlx5 get an answer without any. */
static void test_query_mlx5(void **state)
{
	typedef int query_fn(struct ibv_context * context, struct mlx5dv_context * attr);
	union {
		void *symbol;
		query_fn *call;
	} query = {dlsym(RTLD_DEFAULT, "mlx5dv_query_device")};
	struct mlx5dv_context a;

	(void)state;
	t_holds(query.symbol != NULL);
	memset(&a, 0xa5, sizeof(a));
	a.comp_mask = UINT64_MAX;
	t_eq(query.call(t_ctx, &a), 0);
	t_eq(a.comp_mask, 0);
	t_eq(a.flags, 0);
	t_eq(a.version, 0);
}

static void test_query_device_ex(void **state)
{
	const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			    IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
			    IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t xrc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex a;
	struct ibv_device_attr orig;

	(void)state;
	memset(&a, 0xa5, sizeof(a));
	t_eq(ibv_query_device_ex(t_ctx, NULL, &a), 0);
	t_eq(ibv_query_device(t_ctx, &orig), 0);
	t_mem_eq(&a.orig_attr, &orig, sizeof(orig));
	t_eq(a.comp_mask, 0);
	t_holds(a.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
	t_eq(a.odp_caps.per_transport_caps.rc_odp_caps, rc);
	t_eq(a.odp_caps.per_transport_caps.uc_odp_caps,
	     IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE);
	t_eq(a.odp_caps.per_transport_caps.ud_odp_caps,
	     IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV);
	t_eq(a.xrc_odp_caps, xrc);
	t_holds(a.completion_timestamp_mask == INT64_MAX);
	t_holds(a.hca_core_clock == 1000000);
	t_holds(a.device_cap_flags_ex == orig.device_cap_flags);
	t_eq(a.phys_port_cnt_ex, 1);
	t_eq(a.max_dm_size, 128 << 10);
	t_eq(a.tm_caps.max_num_tags, 0);
	t_eq(a.tso_caps.max_tso, 0);
	t_eq(a.max_wq_type_rq, 0);
}

/* Checks programs that were built with an older or a newer header, and so give another size of
 * their struct. */
static void test_query_device_ex_sizes(void **state)
{
	const size_t old = offsetof(struct ibv_device_attr_ex, tso_caps);
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct verbs_context *extended = verbs_get_ctx(t_ctx);
	struct {
		struct ibv_device_attr_ex a;
		unsigned char future[16];
	} buf;
	unsigned char *bytes = (unsigned char *)&buf;

	(void)state;
	memset(&buf, 0xa5, sizeof(buf));
	t_eq(extended->query_device_ex(t_ctx, NULL, &buf.a, old), 0);
	t_holds(buf.a.hca_core_clock == 1000000);
	for (size_t i = old; i < sizeof(buf); i++)
		t_eq(bytes[i], 0xa5);

	t_eq(extended->query_device_ex(t_ctx, NULL, &buf.a, sizeof(buf)), 0);
	for (size_t i = 0; i < sizeof(buf.future); i++)
		t_eq(buf.future[i], 0);

	t_eq(extended->query_device_ex(t_ctx, NULL, &buf.a, sizeof(struct ibv_device_attr)),
	     EINVAL);
	t_eq(ibv_query_device_ex(t_ctx, &input, &buf.a), EINVAL);
}

static void test_clock(void **state)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	uint64_t before = t_now();

	(void)state;
	t_eq(ibv_query_rt_values_ex(t_ctx, &v), 0);
	t_eq(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	t_eq(v.raw_clock.tv_sec, 0);
	t_holds(((uint64_t)v.raw_clock.tv_nsec) >= before &&
		((uint64_t)v.raw_clock.tv_nsec) <= t_now());
	v.comp_mask = IBV_VALUES_MASK_RESERVED;
	t_eq(ibv_query_rt_values_ex(t_ctx, &v), EINVAL);
}

static void test_query_port(void **state)
{
	struct ibv_port_attr a;

	(void)state;
	memset(&a, 0xa5, sizeof(a));
	t_eq(ibv_query_port(t_ctx, 1, &a), 0);
	t_eq(a.state, IBV_PORT_ACTIVE);
	t_eq(a.max_mtu, IBV_MTU_4096);
	t_eq(a.active_mtu, IBV_MTU_4096);
	t_eq(a.gid_tbl_len, 8);
	t_eq(a.max_msg_sz, 1u << 30);
	t_eq(a.bad_pkey_cntr, 0);
	t_eq(a.qkey_viol_cntr, 0);
	t_eq(a.pkey_tbl_len, 1);
	t_holds(a.lid >= 1 && a.lid <= 0xbfff);
	t_holds(a.sm_lid >= 1 && a.sm_lid <= 0xbfff);
	t_eq(a.lmc, 0);
	t_eq(a.max_vl_num, 4);
	t_eq(a.sm_sl, 0);
	t_eq(a.subnet_timeout, 18);
	t_eq(a.active_width, 2);
	t_eq(a.active_speed, 32);
	t_eq(a.phys_state, 5);
	t_eq(a.link_layer, IBV_LINK_LAYER_INFINIBAND);
	t_eq(a.flags, 0);

	t_eq(ibv_query_port(t_ctx, 0, &a), EINVAL);
	t_eq(ibv_query_port(t_ctx, 2, &a), EINVAL);
	t_eq(ibv_query_port(t_ctx, 255, &a), EINVAL);
}

/* Checks that the symbol, unlike the inline function, fills a struct that ends before
 * port_cap_flags2. */
static void test_query_port_symbol(void **state)
{
	int (*query)(struct ibv_context *, uint8_t, void *);
	const size_t old = offsetof(struct ibv_port_attr, port_cap_flags2);
	unsigned char bytes[sizeof(struct ibv_port_attr) + 16];
	struct ibv_port_attr a;

	(void)state;
	*(void **)&query = dlsym(RTLD_DEFAULT, "ibv_query_port");
	t_holds(query != NULL);
	memset(bytes, 0xa5, sizeof(bytes));
	t_eq(query(t_ctx, 1, bytes), 0);
	t_eq(ibv_query_port(t_ctx, 1, &a), 0);
	t_mem_eq(bytes, &a, old);
	for (size_t i = old; i < sizeof(bytes); i++)
		t_eq(bytes[i], 0xa5);
	t_eq(query(t_ctx, 2, bytes), EINVAL);
}

static void test_gids(void **state)
{
	static const union ibv_gid zero;
	union ibv_gid gid;
	unsigned int type = 1;

	(void)state;
	t_eq(ibv_query_gid(t_ctx, 1, 0, &gid), 0);
	t_holds(gid.global.subnet_prefix == htobe64(0xfe80000000000000ULL));
	t_holds(gid.global.interface_id == ibv_get_device_guid(t_ctx->device));
	for (int i = 1; i < 8; i++) {
		memset(&gid, 0xa5, sizeof(gid));
		t_eq(ibv_query_gid(t_ctx, 1, i, &gid), 0);
		t_mem_eq(&gid, &zero, sizeof(gid));
	}
	t_holds(ibv_query_gid(t_ctx, 1, 8, &gid) != 0);
	t_holds(ibv_query_gid(t_ctx, 1, -1, &gid) != 0);
	t_holds(ibv_query_gid(t_ctx, 2, 0, &gid) != 0);

	t_eq(ibv_query_gid_type(t_ctx, 1, 0, &type), 0);
	t_eq(type, 0);
	t_holds(ibv_query_gid_type(t_ctx, 1, 8, &type) != 0);
	t_holds(ibv_query_gid_type(t_ctx, 2, 0, &type) != 0);
}

static void test_gid_entries(void **state)
{
	struct ibv_gid_entry e[3];
	union ibv_gid gid;

	(void)state;
	t_eq(ibv_query_gid(t_ctx, 1, 0, &gid), 0);
	memset(e, 0xa5, sizeof(e));
	t_eq(ibv_query_gid_ex(t_ctx, 1, 0, e, 0), 0);
	t_mem_eq(&e[0].gid, &gid, sizeof(gid));
	t_eq(e[0].gid_index, 0);
	t_eq(e[0].port_num, 1);
	t_eq(e[0].gid_type, IBV_GID_TYPE_IB);
	t_eq(e[0].ndev_ifindex, 0);
	t_eq(ibv_query_gid_ex(t_ctx, 1, 1, e, 0), ENODATA);
	t_eq(ibv_query_gid_ex(t_ctx, 1, 8, e, 0), EINVAL);
	t_eq(ibv_query_gid_ex(t_ctx, 2, 0, e, 0), EINVAL);
	t_eq(ibv_query_gid_ex(t_ctx, 1, 0, e, 1), EINVAL);

	memset(e, 0xa5, sizeof(e));
	t_eq(ibv_query_gid_table(t_ctx, e, ARRAY_LEN(e), 0), 1);
	t_mem_eq(&e[0].gid, &gid, sizeof(gid));
	t_eq(e[1].port_num, 0xa5a5a5a5);
	t_eq(ibv_query_gid_table(t_ctx, e, 0, 0), -EINVAL);
	t_eq(ibv_query_gid_table(t_ctx, e, ARRAY_LEN(e), 1), -EINVAL);
}

static void test_pkeys(void **state)
{
	__be16 pkey = 0;

	(void)state;
	t_eq(ibv_query_pkey(t_ctx, 1, 0, &pkey), 0);
	t_eq(be16toh(pkey), 0xffff);
	t_holds(ibv_query_pkey(t_ctx, 1, 1, &pkey) != 0);
	t_holds(ibv_query_pkey(t_ctx, 1, -1, &pkey) != 0);
	t_holds(ibv_query_pkey(t_ctx, 2, 0, &pkey) != 0);
	t_eq(ibv_get_pkey_index(t_ctx, 1, htobe16(0xffff)), 0);
	t_holds(ibv_get_pkey_index(t_ctx, 1, htobe16(0x8001)) < 0);
	t_holds(ibv_get_pkey_index(t_ctx, 2, htobe16(0xffff)) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_device_node),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_query_device),
		cmocka_unit_test(test_query_mlx5),
		cmocka_unit_test(test_query_device_ex),
		cmocka_unit_test(test_query_device_ex_sizes),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_query_port),
		cmocka_unit_test(test_query_port_symbol),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_gid_entries),
		cmocka_unit_test(test_pkeys),
	};

	return cmocka_run_group_tests(tests, t_context_setup, t_context_teardown);
}
