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
#include "net/adapter/objects.h"
#include "played_verbs.h"

static char said[512];
static int failed;

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

/* ---- the list of ports ---- */

/* Checks which ports are listed, as "hca0:1 hca1:1", or the beginning of the sentence if none is.
 */
static void lists(const char *name, const char *wanted, const char *exclude, unsigned room)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {.log = keep};
	struct tq_net net = {.params = params, .job = &job};
	struct tq_port ports[DEVICES * PORTS];
	char got[512] = "";
	int n;

	tq_param_set(params, "if_exclude", exclude, NULL, 0);
	n = tq_device_list(&net, ports, room);
	if (n < 0)
		snprintf(got, sizeof(got), "%s", said);
	for (int i = 0; i < n; i++) {
		size_t len = strlen(got);

		snprintf(got + len, sizeof(got) - len, "%s%s:%u", i ? " " : "", ports[i].device,
			 ports[i].number);
	}
	tq_params_free(params);
	if (n < 0 ? strncmp(got, wanted, strlen(wanted)) : strcmp(got, wanted)) {
		printf("not ok device: %s - \"%s\", not \"%s\"\n", name, got, wanted);
		failed = 1;
	} else {
		printf("ok device: %s\n", name);
	}
}

static void of_lists(void)
{
	struct port *near = adapters[0].ports, *far = adapters[1].ports;

	begin();
	lists("all ports that work, the nearest first", "hca0:1 hca1:1", "", 4);
	lists("the best ones, if there is little room", "hca0:1", "", 1);
	lists("without those that are excluded", "hca1:1", "hca0", 4);
	far[1] = far[0];
	far[1].speed = 64;
	lists("the fastest first", "hca1:2 hca0:1 hca1:1", "", 4);
	near[0].link = IBV_LINK_LAYER_ETHERNET;
	near[0].gids = GIDS_IPV4;
	lists("InfiniBand first", "hca1:2 hca1:1 hca0:1", "", 4);
	near[0].state = far[0].state = far[1].state = IBV_PORT_DOWN;
	lists("none is active", "Port hca1:2 is not active.", "", 4);
	begin();
	lists("none is allowed", "if_include \"\" and if_exclude \"hca0,hca1\" allow none",
	      "hca0,hca1", 4);
	adapters[0].max_srq = adapters[1].max_srq = 1;
	lists("none works", "hca0 offers 1 shared receive queues", "", 4);
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
	of_lists();
	return failed;
}
