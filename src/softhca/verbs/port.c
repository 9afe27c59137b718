/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - the one port: its attributes, its GID table and its P_Key table. */
#include "verbs.h"

#include <endian.h>
#include <errno.h>

/* Values of the PortInfo attribute (IBA 14.2.5.6) that libibverbs has no names for. */
#define PHYS_LINK_UP 5
#define WIDTH_4X     2
#define SPEED_EDR    32
#define VL0_TO_VL7   4
#define SM_LID       1
#define SUBNET_TMO   18

static uint32_t violations(const struct shca_hca *hca, enum shca_counter c)
{
	return (uint32_t)atomic_load_explicit(&hca->counters[c], memory_order_relaxed);
}

static void fill_port(const struct shca_hca *hca, struct ibv_port_attr *a)
{
	const struct shca_fabric *f = &shca_self.fabric;

	*a = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		/* the option's choices are in the order of the enum */
		.active_mtu = (enum ibv_mtu)(IBV_MTU_256 + shca_opt(f, SHCA_O_MTU)),
		.gid_tbl_len = SHCA_GID_TBL_LEN,
		.port_cap_flags = IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP,
		.max_msg_sz = (uint32_t)shca_opt(f, SHCA_O_MAX_MSG_SZ),
		.bad_pkey_cntr = violations(hca, SHCA_C_PKEY_VIOLATIONS),
		.qkey_viol_cntr = violations(hca, SHCA_C_QKEY_VIOLATIONS),
		.pkey_tbl_len = hca->npkeys,
		.lid = hca->lid,
		.sm_lid = SM_LID,
		.max_vl_num = VL0_TO_VL7,
		.subnet_timeout = SUBNET_TMO,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_EDR,
		.phys_state = PHYS_LINK_UP,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
	};
}

int shca_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t attr_size)
{
	struct ibv_port_attr a;

	if (port_num != SHCA_PORT)
		return EINVAL;
	fill_port(shca_ctx(context)->hca, &a);
	/* The caller's struct may be an older or a newer one. */
	memset(attr, 0, attr_size);
	memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
	return 0;
}

/* The symbol serves programs that were built when the struct ended before port_cap_flags2. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	return shca_query_port(context, port_num, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

void shca_gid_at(const struct shca_hca *hca, unsigned index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index == 0) {
		gid->global.subnet_prefix = htobe64(SHCA_GID_PREFIX);
		gid->global.interface_id = htobe64(hca->guid);
	}
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (port_num != SHCA_PORT || index < 0 || index >= SHCA_GID_TBL_LEN) {
		errno = EINVAL;
		return -1;
	}
	shca_gid_at(shca_ctx(context)->hca, (unsigned)index, gid);
	return 0;
}

static void copy_gid_entry(const struct shca_context *ctx, void *to, size_t entry_size)
{
	struct ibv_gid_entry e = {
		.gid_index = 0,
		.port_num = SHCA_PORT,
		.gid_type = IBV_GID_TYPE_IB,
	};

	shca_gid_at(ctx->hca, 0, &e.gid);
	memset(to, 0, entry_size);
	memcpy(to, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags != 0 || port_num != SHCA_PORT || gid_index >= SHCA_GID_TBL_LEN)
		return EINVAL;
	if (gid_index != 0)
		return ENODATA;
	copy_gid_entry(shca_ctx(context), entry, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	if (flags != 0 || max_entries < 1)
		return -EINVAL;
	copy_gid_entry(shca_ctx(context), entries, entry_size);
	return 1;
}

/* 0 is "InfiniBand or RoCE v1" in this function's own enum, and what empty entries have too. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type)
{
	(void)context;
	if (port_num != SHCA_PORT || index >= SHCA_GID_TBL_LEN) {
		errno = EINVAL;
		return -1;
	}
	*type = 0;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	const struct shca_hca *hca = shca_ctx(context)->hca;

	if (port_num != SHCA_PORT || index < 0 || index >= hca->npkeys) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(hca->pkeys[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	const struct shca_hca *hca = shca_ctx(context)->hca;

	if (port_num == SHCA_PORT)
		for (int i = 0; i < hca->npkeys; i++)
			if (hca->pkeys[i] == be16toh(pkey))
				return i;
	errno = EINVAL;
	return -1;
}
