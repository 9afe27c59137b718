/* SPDX-License-Identifier: BSD-3-Clause */
/* played_verbs.c - see played_verbs.h. */
#include "played_verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/adapter/locality.h"

struct adapter adapters[DEVICES];
static struct ibv_device *list[DEVICES + 1] = {&adapters[0].ibv, &adapters[1].ibv};
enum ibv_fork_status fork_status;
unsigned fork_inits;

static const struct adapter *adapter_of(const struct ibv_device *device)
{
	return device == &adapters[0].ibv ? &adapters[0] : &adapters[1];
}

static const struct port *port_of(const struct ibv_context *context, unsigned port)
{
	return &adapter_of(context->device)->ports[port - 1];
}

int tq_locality(const struct ibv_device *device)
{
	return adapter_of(device)->distance;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return fork_status;
}

int ibv_fork_init(void)
{
	fork_inits++;
	return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	*n = DEVICES;
	return list;
}

void ibv_free_device_list(struct ibv_device **devices)
{
	(void)devices;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return &adapters[device != &adapters[0].ibv].verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct adapter *adapter = adapter_of(context->device);

	*attr = (struct ibv_device_attr){
		.device_cap_flags = adapter->no_xrc ? 0 : IBV_DEVICE_XRC,
		.phys_port_cnt = PORTS,
		.max_srq = adapter->max_srq,
		.max_srq_wr = 1000,
		.max_srq_sge = 4,
		.max_sge = 4,
		.max_qp_wr = 1000,
	};
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr all = {
		.state = port_of(context, port)->state,
		.link_layer = port_of(context, port)->link,
		.active_mtu = IBV_MTU_4096,
		.max_msg_sz = 1 << 30,
		.pkey_tbl_len = 1,
		.active_width = port_of(context, port)->width,
		.active_speed = port_of(context, port)->speed,
	};

	memcpy(attr, &all, sizeof(all) < 48 ? sizeof(all) : 48);
	return 0;
}

/* Finds the port's GID of that index, and returns its type; -1: there is none. */
static int gid_at(const struct port *port, unsigned index, union ibv_gid *gid)
{
	static const union ibv_gid gids[GIDS_KINDS] = {
		{.raw = {0xfe, 0x80, [15] = 1}},
		{.raw = {0xfe, 0x80, [15] = 1}},
		{.raw = {0x20, 0x01, [15] = 1}},
		{.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}},
	};
	unsigned at = 0;

	for (int kind = 0; kind < GIDS_KINDS; kind++) {
		for (int v = 1; v <= 2; v++) {
			if (!(port->gids >> kind & 1) || (1 << kind == GIDS_V1 && v == 2) ||
			    at++ != index)
				continue;
			*gid = gids[kind];
			return v == 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
		}
	}
	return -1;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid_at(port_of(context, port), (unsigned)index, gid);
	return index < 16 && !port_of(context, port)->no_table ? 0 : -1;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	int type = gid_at(port_of(context, port), index, &entry->gid);

	(void)flags;
	(void)size;
	if (type < 0)
		return ENODATA;
	entry->gid_type = (uint32_t)type;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)index;
	*pkey = htobe16(port_of(context, port)->pkey);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	static struct ibv_pd pd;

	pd.context = context;
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	static struct ibv_cq cq;

	(void)context, (void)cqe, (void)cq_context, (void)channel, (void)vector;
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	static struct ibv_qp qp;

	(void)pd;
	(void)attr;
	return &qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	(void)event;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	static struct ibv_xrcd xrcd;

	(void)attr;
	xrcd.context = context;
	return &xrcd;
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	(void)xrcd;
	return 0;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	(void)context;
	return ibv_create_qp(NULL, (struct ibv_qp_init_attr *)attr);
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	errno = adapter_of(context->device)->open_qp_error;
	(void)attr;
	return errno ? NULL : ibv_create_qp(NULL, NULL);
}

void open_adapter(struct adapter *adapter, int async_fd)
{
	adapter->verbs = (struct verbs_context){
		.sz = sizeof(adapter->verbs),
		.open_xrcd = open_xrcd,
		.close_xrcd = close_xrcd,
		.create_qp_ex = create_qp_ex,
		.open_qp = open_qp,
		.context = {.device = &adapter->ibv,
			    .async_fd = async_fd,
			    .abi_compat = __VERBS_ABI_IS_EXTENDED},
	};
}
