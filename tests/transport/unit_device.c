/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a port among several: net/adapter/choose.c and net/adapter/device.c, with stand-ins
 * for the verbs and for net/adapter/locality.c. The tests say which adapters there are, and how
 * near they are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "net/adapter/choose.h"
#include "net/adapter/device.h"
#include "net/adapter/locality.h"
#include "net/adapter/objects.h"

#define DEVICES 2
#define PORTS   2

struct port {
	enum ibv_port_state state;
	uint8_t link;
	uint8_t gids;  /* GIDS_...: the addresses of its interface */
	bool no_table; /* its GIDs can't be queried */
	uint16_t pkey;
	uint8_t width, speed; /* codes of the verbs */
};

/* The GIDs of each address: one of RoCE v1 and one of v2, or only one of v1. */
#define GIDS_V1    1
#define GIDS_LOCAL 2
#define GIDS_IPV6  4
#define GIDS_IPV4  8
#define GIDS_KINDS 4

static struct adapter {
	int distance;
	bool no_xrc;
	int open_qp_error; /* ENOSYS: the provider has no ibv_open_qp() */
	int max_srq;
	struct port ports[PORTS];
	struct ibv_device ibv;
	struct verbs_context verbs;
} adapters[DEVICES];

static struct ibv_device *list[DEVICES + 1] = {&adapters[0].ibv, &adapters[1].ibv};
static enum ibv_fork_status fork_status;
static unsigned fork_inits;
static char said[512];
static int failed;

/* ---- verbs ---- */

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

static void open_adapter(struct adapter *adapter, int async_fd)
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

/* ---- cases ---- */

static void keep(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

/* Begins with two adapters whose first ports would both do; the first adapter is nearer. */
static void begin(void)
{
	for (int i = 0; i < DEVICES; i++) {
		struct adapter *adapter = &adapters[i];

		adapter->distance = 10 * (i + 1);
		adapter->no_xrc = false;
		adapter->open_qp_error = 0;
		adapter->max_srq = 1000;
		for (int p = 0; p < PORTS; p++)
			adapter->ports[p] = (struct port){
				.state = p ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
				.link = IBV_LINK_LAYER_INFINIBAND,
				.pkey = 0xffff,
				.width = 2,
				.speed = 32,
			};
		snprintf(adapter->ibv.name, sizeof(adapter->ibv.name), "hca%d", i);
	}
	*said = '\0';
}

/* Checks which port is taken: "hca0:1", on RoCE with " GID 3", or the beginning of the sentence if
 * none is taken. `parameter` is "NAME=VALUE" or NULL. */
static void takes(const char *name, const char *wanted, const char *parameter)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {.log = keep};
	struct tq_net net = {.params = params, .job = &job};
	char got[512], word[64];

	if (parameter) {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(parameter, "="), parameter);
		tq_param_set(params, word, strchr(parameter, '=') + 1, NULL, 0);
	}
	if (tq_device_choose(&net) || tq_device_open(&net)) {
		snprintf(got, sizeof(got), "%s", said);
		if (net.dev.verbs)
			tq_device_release(&net);
	} else {
		int n = snprintf(got, sizeof(got), "%s:%u", net.dev.verbs->device->name,
				 net.dev.port_num);

		if (net.dev.gid_index >= 0)
			snprintf(got + n, sizeof(got) - (size_t)n, " GID %d", net.dev.gid_index);
		tq_device_close(&net);
		tq_device_release(&net);
	}
	tq_params_free(params);
	if (strncmp(got, wanted, strlen(wanted)) != 0) {
		printf("not ok device: %s - \"%s\", not \"%s\"\n", name, got, wanted);
		failed = 1;
	} else {
		printf("ok device: %s\n", name);
	}
}

static void of_links(void)
{
	struct port *near = adapters[0].ports, *far = adapters[1].ports;

	begin();
	near[0].link = IBV_LINK_LAYER_ETHERNET;
	takes("InfiniBand before RoCE without an address, though that is nearer", "hca1:1", NULL);
	near[0].gids = GIDS_LOCAL;
	takes("InfiniBand before RoCE, though that is nearer", "hca1:1", NULL);
	takes("RoCE where it is asked for", "hca0:1", "if_include=hca0");
	far[0].state = IBV_PORT_DOWN;
	takes("RoCE where InfiniBand is down", "hca0:1", NULL);
	begin();
	near[0].link = far[0].link = IBV_LINK_LAYER_ETHERNET;
	far[0].gids = GIDS_LOCAL;
	takes("RoCE with an address, though that without is nearer", "hca1:1", NULL);
	far[0].gids = GIDS_V1;
	takes("RoCE without an address is said to lack it", "hca0:1 has no RoCE v2 GID", NULL);
	begin();
	near[0].link = IBV_LINK_LAYER_ETHERNET;
	near[1].state = IBV_PORT_ACTIVE;
	takes("the InfiniBand port of the nearest", "hca0:2", NULL);
}

static void of_gids(void)
{
	struct port *port = adapters[0].ports;

	begin();
	port->link = adapters[1].ports[0].link = IBV_LINK_LAYER_ETHERNET;
	port->gids = GIDS_LOCAL;
	takes("a link-local GID where there is no other", "hca0:1 GID 1", NULL);
	port->gids = GIDS_LOCAL | GIDS_IPV6;
	takes("the GID of an IPv6 address that reaches further", "hca0:1 GID 3", NULL);
	port->gids = GIDS_LOCAL | GIDS_IPV6 | GIDS_IPV4;
	takes("the GID of an IPv4 address", "hca0:1 GID 5", NULL);
	takes("the GID that is asked for", "hca0:1 GID 2", "gid_index=2");
	takes("a GID that is not there", "hca0:1 has no GID of index 16", "gid_index=16");
	port->gids = GIDS_LOCAL;
	adapters[1].ports[0].gids = GIDS_LOCAL | GIDS_IPV4;
	takes("RoCE with an IPv4 address, though that without is nearer", "hca1:1 GID 3", NULL);
	takes("the nearer of two RoCE ports", "hca0:1 GID 1", "gid_index=1");
	begin();
	port->no_table = true;
	takes("InfiniBand without a first GID", "hca0:1 has no GID of index 0 ", "if_include=hca0");
	adapters[0].verbs.context.async_fd = -1;
	port->no_table = false;
	takes("a file of events that is closed", "The events of hca0 can't be read", NULL);
	adapters[0].verbs.context.async_fd = adapters[1].verbs.context.async_fd;
}

static void of_usable_ports(void)
{
	struct port *near = adapters[0].ports, *far = adapters[1].ports;

	begin();
	takes("the nearest", "hca0:1", NULL);
	adapters[1].distance = 5;
	takes("the nearest, which is the second", "hca1:1", NULL);
	begin();
	near[0].state = IBV_PORT_DOWN;
	takes("one that is active, though the other is nearer", "hca1:1", NULL);
	far[0].state = IBV_PORT_DOWN;
	takes("none is active", "Port hca1:2 is not active", NULL);
	begin();
	near[0].pkey = 0x8001;
	takes("one in the partition, though the other is nearer", "hca1:1", "pkey=0x7fff");
	takes("none is in the partition", "hca0:1 has no partition key", "pkey=5");
	begin();
	adapters[0].max_srq = 1;
	takes("one with enough of all, though the other is nearer", "hca1:1", NULL);
	begin();
	adapters[0].no_xrc = true;
	takes("one with XRC, though the other is nearer", "hca1:1", NULL);
	adapters[1].no_xrc = true;
	takes("none has XRC",
	      "No RDMA device with XRC (extended reliable connections) was found "
	      "among hca0, hca1. Use ",
	      NULL);
	begin();
	adapters[0].open_qp_error = EOPNOTSUPP;
	takes("one with ibv_open_qp(), though the other is nearer", "hca1:1", NULL);
	takes("one without ibv_open_qp() that is asked for",
	      "hca0 has XRC, but not ibv_open_qp() (Operation not supported), by which processes "
	      "share connections. Use ",
	      "if_include=hca0");
	adapters[0].open_qp_error = ENOSYS;
	takes("one whose kernel has no ibv_open_qp()",
	      "hca0 has XRC, but not ibv_open_qp() (Function not implemented)", "if_include=hca0");
	adapters[0].open_qp_error = ENOMEM;
	takes("one that is short of queue pairs while it is looked at", "hca0:1", NULL);
	begin();
	adapters[0].ports[0].speed = 16;
	takes("the faster one, though the other is nearer", "hca1:1", NULL);
	begin();
	adapters[0].ports[0].width = 1;
	adapters[0].ports[0].speed = 128;
	takes("of two as fast, with 1 lane and with 4, the nearer", "hca0:1", NULL);
}

/* Checks that fork support is initialised if the kernel needs it. */
static void of_forks(void)
{
	static const struct {
		const char *name;
		enum ibv_fork_status status;
		unsigned inits;
	} c[] = {
		{"the kernel needs fork support", IBV_FORK_DISABLED, 1},
		{"fork support is already on", IBV_FORK_ENABLED, 0},
		{"the kernel needs no fork support", IBV_FORK_UNNEEDED, 0},
	};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		begin();
		fork_inits = 0;
		fork_status = c[i].status;
		takes(c[i].name, "hca0:1", NULL);
		if (fork_inits != c[i].inits) {
			printf("not ok %s - ibv_fork_init() called %u times\n", c[i].name,
			       fork_inits);
			failed = 1;
		}
	}
}

int main(void)
{
	int fd = eventfd(0, 0);

	for (int i = 0; i < DEVICES; i++)
		open_adapter(&adapters[i], fd);
	of_usable_ports();
	of_links();
	of_gids();
	of_forks();
	return failed;
}
