/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.c - the one port: its attributes, its GID table and its P_Key table.
 */
#include "verbs.h"

#include <endian.h>
#include <errno.h>

/* Values of the PortInfo attribute (IBA 14.2.5.6) for which libibverbs has no names. */
#define PHYS_LINK_UP 5
#define WIDTH_4X     2
#define VL0_TO_VL7   4
#define SM_LID       1
#define SUBNET_TMO   18

static uint32_t violations(const struct shca_hca *hca, enum shca_counter counter)
{
	return (uint32_t)atomic_load_explicit(&hca->counters[counter], memory_order_relaxed);
}

static void fill_port(const struct shca_hca *hca, struct ibv_port_attr *attr)
{
	const struct shca_fabric *fabric = &shca_self.fabric;
	bool ethernet = shca_is_ethernet(fabric->hdr);

	*attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		/* the option's choices have the order of the enum */
		.active_mtu = (enum ibv_mtu)(IBV_MTU_256 + shca_opt(fabric, SHCA_O_MTU)),
		.gid_tbl_len = SHCA_GID_TBL_LEN,
		.port_cap_flags = ethernet ? SHCA_CAPS_ETH : SHCA_CAPS_IB,
		.max_msg_sz = (uint32_t)shca_opt(fabric, SHCA_O_MAX_MSG_SZ),
		.bad_pkey_cntr = violations(hca, SHCA_C_PKEY_VIOLATIONS),
		.qkey_viol_cntr = violations(hca, SHCA_C_QKEY_VIOLATIONS),
		.pkey_tbl_len = hca->npkeys,
		.lid = hca->lid,
		.sm_lid = ethernet ? 0 : SM_LID,
		.max_vl_num = ethernet ? 0 : VL0_TO_VL7,
		.subnet_timeout = ethernet ? 0 : SUBNET_TMO,
		.active_width = WIDTH_4X,
		.active_speed = shca_config_port_speed(&fabric->hdr->config)->code,
		.phys_state = PHYS_LINK_UP,
		.link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
		/* The kernel says so of each RoCE port. */
		.flags = ethernet || shca_opt(fabric, SHCA_O_GRH_REQUIRED) ? IBV_QPF_GRH_REQUIRED
									   : 0,
	};
}

int shca_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t attr_size)
{
	struct ibv_port_attr own;

	if (port_num != SHCA_PORT)
		return EINVAL;
	fill_port(shca_ctx(context)->hca, &own);
	/* The caller's struct may be an older or a newer one. */
	memset(attr, 0, attr_size);
	memcpy(attr, &own, attr_size < sizeof(own) ? attr_size : sizeof(own));
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

/* Reads an entry of the GID table of the context's port. */
static bool gid_at(struct ibv_context *context, unsigned index, union ibv_gid *gid,
		   enum ibv_gid_type *type)
{
	return shca_gid_at(shca_self.fabric.hdr, shca_ctx(context)->hca, index, gid, type);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	enum ibv_gid_type type;

	if (port_num != SHCA_PORT || index < 0 || index >= SHCA_GID_TBL_LEN) {
		errno = EINVAL;
		return -1;
	}
	gid_at(context, (unsigned)index, gid, &type);
	return 0;
}

/* Copies an entry of the GID table into the caller's struct, which may be older or newer. Returns
 * false if the entry is empty. */
static bool copy_gid_entry(struct ibv_context *context, unsigned index, void *to, size_t entry_size)
{
	const struct shca_hca *hca = shca_ctx(context)->hca;
	struct ibv_gid_entry entry = {.gid_index = index, .port_num = SHCA_PORT};
	enum ibv_gid_type type;

	if (!gid_at(context, index, &entry.gid, &type))
		return false;
	entry.gid_type = type;
	/* As with Linux, the GID of an InfiniBand port has no interface. */
	if (shca_is_ethernet(shca_self.fabric.hdr))
		entry.ndev_ifindex = SHCA_INTERFACE + hca->device;
	memset(to, 0, entry_size);
	memcpy(to, &entry, entry_size < sizeof(entry) ? entry_size : sizeof(entry));
	return true;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags != 0 || port_num != SHCA_PORT || gid_index >= SHCA_GID_TBL_LEN)
		return EINVAL;
	return copy_gid_entry(context, gid_index, entry, entry_size) ? 0 : ENODATA;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	unsigned n = 0;
	union ibv_gid gid;
	enum ibv_gid_type type;

	if (flags != 0)
		return -EINVAL;
	while (gid_at(context, n, &gid, &type)) {
		if (n == max_entries)
			return -EINVAL;
		copy_gid_entry(context, n, (char *)entries + n * entry_size, entry_size);
		n++;
	}
	return n;
}

/* In this function's own enum 0 is "InfiniBand or RoCE v1", which empty entries have too, and 1
 * is RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type)
{
	enum ibv_gid_type gid_type;
	union ibv_gid gid;

	if (port_num != SHCA_PORT || index >= SHCA_GID_TBL_LEN) {
		errno = EINVAL;
		return -1;
	}
	gid_at(context, index, &gid, &gid_type);
	*type = gid_type == IBV_GID_TYPE_ROCE_V2;
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
