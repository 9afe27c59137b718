/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query.c - the attributes of a device: the fabric's options, and no feature that is not there.
 */
#include "verbs.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>

#include "clock/clock.h"
#include "hca/queues/cq.h"

#define PAGE_SIZES 0xfffffffffffff000ULL /* 4 KiB and all powers of two above */
#define ACK_DELAY  16                    /* 4.096 us * 2^16, as the ConnectX has it */
#define CLOCK_KHZ  1000000               /* time stamps count nanoseconds */
#define TIMESTAMPS 0x7fffffffffffffffULL /* the bits of a time stamp, as with mlx5 */

static int clip_int(int64_t n)
{
	return n < INT_MAX ? (int)n : INT_MAX;
}

static unsigned int cap_flags(const struct shca_fabric *fabric)
{
	unsigned int flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
			     IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;

	if (shca_opt(fabric, SHCA_O_XRC))
		flags |= IBV_DEVICE_XRC;
	if (shca_opt(fabric, SHCA_O_MW))
		flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	return flags;
}

static void fill_limits(const struct shca_fabric *fabric, struct ibv_device_attr *attr)
{
	int64_t rd_atomic = shca_opt(fabric, SHCA_O_MAX_RD_ATOMIC);
	int64_t mr_size = shca_opt(fabric, SHCA_O_MAX_MR_SIZE);

	attr->max_mr_size = mr_size == INT64_MAX ? UINT64_MAX : (uint64_t)mr_size;
	attr->max_qp = (int)shca_opt(fabric, SHCA_O_MAX_QP);
	attr->max_qp_wr = (int)shca_opt(fabric, SHCA_O_MAX_QP_WR);
	attr->max_sge = (int)shca_opt(fabric, SHCA_O_MAX_SGE);
	attr->max_sge_rd = attr->max_sge;
	attr->max_cq = (int)shca_opt(fabric, SHCA_O_MAX_CQ);
	attr->max_cqe = (int)shca_opt(fabric, SHCA_O_MAX_CQE);
	attr->max_mr = (int)shca_opt(fabric, SHCA_O_MAX_MR);
	attr->max_mw = shca_opt(fabric, SHCA_O_MW) ? (int)shca_opt(fabric, SHCA_O_MAX_MW) : 0;
	attr->max_pd = (int)shca_opt(fabric, SHCA_O_MAX_PD);
	attr->max_qp_rd_atom = (int)rd_atomic;
	attr->max_qp_init_rd_atom = (int)rd_atomic;
	attr->max_res_rd_atom = clip_int(rd_atomic * attr->max_qp);
	attr->max_mcast_grp = (int)shca_opt(fabric, SHCA_O_MAX_MCAST);
	attr->max_mcast_qp_attach = attr->max_mcast_grp;
	attr->max_total_mcast_qp_attach = attr->max_mcast_grp;
	attr->max_ah = INT_MAX;
	attr->max_srq = (int)shca_opt(fabric, SHCA_O_MAX_SRQ);
	attr->max_srq_wr = (int)shca_opt(fabric, SHCA_O_MAX_SRQ_WR);
	attr->max_srq_sge = (int)shca_opt(fabric, SHCA_O_MAX_SRQ_SGE);
}

static void fill_device(const struct shca_context *ctx, struct ibv_device_attr *attr)
{
	const struct shca_fabric *fabric = &shca_self.fabric;

	*attr = (struct ibv_device_attr){
		.fw_ver = SHCA_FW_VER,
		.node_guid = htobe64(ctx->hca->guid),
		.sys_image_guid = htobe64(ctx->hca->guid),
		.page_size_cap = PAGE_SIZES,
		.vendor_id = (uint32_t)shca_opt(fabric, SHCA_O_VENDOR_ID),
		.vendor_part_id = (uint32_t)shca_opt(fabric, SHCA_O_PART_ID),
		.device_cap_flags = cap_flags(fabric),
		.atomic_cap = shca_opt(fabric, SHCA_O_ATOMICS) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
		.max_pkeys = ctx->hca->npkeys,
		.local_ca_ack_delay = ACK_DELAY,
		.phys_port_cnt = SHCA_PORTS,
	};
	fill_limits(fabric, attr);
}

/* Regions are never pinned by the kernel, so on-demand regions can do what others can. Only XRC
 * atomics are not offered, as on adapters of the field: programs must expect that. */
static void fill_odp(const struct shca_fabric *fabric, struct ibv_device_attr_ex *attr)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	const uint32_t rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	const int64_t odp = shca_opt(fabric, SHCA_O_ODP);

	if (odp == SHCA_ODP_OFF)
		return;
	attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
	if (odp == SHCA_ODP_IMPLICIT)
		attr->odp_caps.general_caps |= IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = both | rdma | IBV_ODP_SUPPORT_SRQ_RECV;
	if (shca_opt(fabric, SHCA_O_ATOMICS))
		attr->odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_ATOMIC;
	attr->odp_caps.per_transport_caps.uc_odp_caps = both | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = both | IBV_ODP_SUPPORT_SRQ_RECV;
	if (shca_opt(fabric, SHCA_O_XRC))
		attr->xrc_odp_caps = IBV_ODP_SUPPORT_SEND | rdma | IBV_ODP_SUPPORT_SRQ_RECV;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	fill_device(shca_ctx(context), attr);
	return 0;
}

int shca_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex a = {0};

	if (input && input->comp_mask)
		return EINVAL;
	if (attr_size < offsetof(struct ibv_device_attr_ex, odp_caps))
		return EINVAL;
	fill_device(shca_ctx(context), &a.orig_attr);
	fill_odp(&shca_self.fabric, &a);
	a.completion_timestamp_mask = TIMESTAMPS;
	a.hca_core_clock = CLOCK_KHZ;
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = SHCA_PORTS;
	a.cq_mod_caps.max_cq_count = SHCA_CQ_MOST_COUNT;
	a.cq_mod_caps.max_cq_period = SHCA_CQ_MOST_PERIOD;
	a.max_dm_size = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_DM_SIZE);
	/* The caller's struct may be an older or a newer one. */
	memset(attr, 0, attr_size);
	memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
	return 0;
}

/* The raw clock is a count of ticks: as in mlx5 all of it is in tv_nsec, whatever its size. */
int shca_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	SHCA_CLOCKED(TIME, 1);

	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)shca_now();
	}
	return 0;
}
