/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which port is taken where there are several: net/choose.c and net/device.c, with verbs and a
 * net/near.c that are told here what adapters there are, and how near.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "net/near.h"

#define DEVICES 2
#define PORTS   2

struct port {
	enum ibv_port_state state;
	uint8_t link;
	bool roce_v2; /* has a GID of it */
	uint16_t pkey;
};

static struct adapter {
	int distance;
	bool no_xrc;
	int max_srq;
	struct port ports[PORTS];
	struct ibv_device ibv;
	struct ibv_context context;
} adapters[DEVICES];

static struct ibv_device *list[DEVICES + 1] = {&adapters[0].ibv, &adapters[1].ibv};
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

int tq_near(const struct ibv_device *device)
{
	return adapter_of(device)->distance;
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
	return &adapters[device != &adapters[0].ibv].context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct adapter *a = adapter_of(context->device);

	*attr = (struct ibv_device_attr){
		.device_cap_flags = a->no_xrc ? 0 : IBV_DEVICE_XRC,
		.phys_port_cnt = PORTS,
		.max_srq = a->max_srq,
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
	};

	memcpy(attr, &all, sizeof(all) < 48 ? sizeof(all) : 48);
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)context;
	(void)port;
	(void)index;
	memset(gid, 1, sizeof(*gid));
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)flags;
	(void)size;
	if (index || !port_of(context, port)->roce_v2)
		return ENODATA;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
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

/* ---- cases ---- */

static void keep(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", text);
}

/* Two adapters, both of which would do, by their first ports; the first one is nearer. */
static void begin(void)
{
	for (int i = 0; i < DEVICES; i++) {
		struct adapter *a = &adapters[i];

		a->distance = 10 * (i + 1);
		a->no_xrc = false;
		a->max_srq = 1000;
		for (int p = 0; p < PORTS; p++)
			a->ports[p] = (struct port){
				.state = p ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
				.link = IBV_LINK_LAYER_INFINIBAND,
				.pkey = 0xffff,
			};
		snprintf(a->ibv.name, sizeof(a->ibv.name), "hca%d", i);
		a->context.device = &a->ibv;
	}
	*said = '\0';
}

/* "hca0:1", or what is said where none is taken. PARAMETERS: "NAME=VALUE", or NULL. */
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
	if (tq_device_open(&net)) {
		snprintf(got, sizeof(got), "%s", said);
	} else {
		snprintf(got, sizeof(got), "%s:%u", net.dev.verbs->device->name, net.dev.port_num);
		tq_device_close(&net);
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
	near[0].roce_v2 = true;
	takes("InfiniBand before RoCE, though that is nearer", "hca1:1", NULL);
	takes("RoCE where it is asked for", "hca0:1", "if_include=hca0");
	far[0].state = IBV_PORT_DOWN;
	takes("RoCE where InfiniBand is down", "hca0:1", NULL);
	begin();
	near[0].link = far[0].link = IBV_LINK_LAYER_ETHERNET;
	far[0].roce_v2 = true;
	takes("RoCE with an address, though that without is nearer", "hca1:1", NULL);
	far[0].roce_v2 = false;
	takes("RoCE without an address is said to lack it", "hca0:1 has no RoCE v2 GID", NULL);
	begin();
	near[0].link = IBV_LINK_LAYER_ETHERNET;
	near[1].state = IBV_PORT_ACTIVE;
	takes("the InfiniBand port of the nearest", "hca0:2", NULL);
}

static void of_what_works(void)
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
	takes("none is active", "port hca1:2 is not active", NULL);
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
}

int main(void)
{
	int fd = eventfd(0, 0);

	for (int i = 0; i < DEVICES; i++)
		adapters[i].context.async_fd = fd;
	of_what_works();
	of_links();
	return failed;
}
