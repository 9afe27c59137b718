/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/address.h"
#include "net/adapter/device.h"
#include "net/adapter/locality.h"
#include "net/adapter/objects.h"
#include "net/adapter/verbs.h"

/* How good a port is; the first member that differs decides. InfiniBand comes before RoCE, and an
 * IPv4 address of RoCE before others, however near those are. All processes of a job have to be on
 * one kind of link, and each may be nearer to another port. */
struct merit {
	bool works, infiniband;
	int reach; /* RoCE: tq_gid_reach() of its GID */
	unsigned speed;
	int distance;
};

/* The devices that were found, for the sentence when none will do. */
struct choice {
	struct ibv_device *device;
	uint8_t port;
	struct merit merit;
	unsigned allowed, opened, xrc; /* devices that passed so far */
	int error;                     /* errno of the last device that could not be opened */
	char part[128];                /* a device that has XRC in part, and what it lacks */
	char down[64];                 /* a port that isn't active */
	char there[200];               /* the names of all devices */
	struct tq_port *ports;         /* tq_device_list(): the ports that work; else NULL */
	struct merit *merits;          /* theirs */
	unsigned nports, room;
};

/* Returns true if "device" or "device:port" is in a list of such names, separated by commas. */
static bool is_listed(const char *list, const char *device, unsigned port)
{
	size_t len = strlen(device), n;
	char *end;

	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n < len || strncmp(list, device, len))
			continue;
		if (n == len || (list[len] == ':' && strtoul(list + len + 1, &end, 10) == port &&
				 end == list + n))
			return true;
	}
	return false;
}

/* Returns true if the list names the device or a port of it. Ports are looked at later. */
static bool is_device_listed(const char *list, const char *device)
{
	size_t len = strlen(device), n;

	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n >= len && !strncmp(list, device, len) && (n == len || list[len] == ':'))
			return true;
	}
	return false;
}

static bool is_port_allowed(const struct tq_params *params, const char *device, unsigned port)
{
	if (*params->if_include && !is_listed(params->if_include, device, port))
		return false;
	return !is_listed(params->if_exclude, device, port);
}

static bool is_better(const struct merit *a, const struct merit *b)
{
	if (a->works != b->works)
		return a->works;
	if (a->infiniband != b->infiniband)
		return a->infiniband;
	if (a->reach != b->reach)
		return a->reach > b->reach;
	if (a->speed != b->speed)
		return a->speed > b->speed;
	return a->distance < b->distance;
}

static void say_nothing(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	(void)text;
}

/* Judges a port quietly. If a port that doesn't work is the only one, opening it says what it
 * lacks. */
static struct merit merit_of(struct tq_net *net, struct ibv_context *verbs, uint8_t port)
{
	static const struct tq_job quiet = {.log = say_nothing};
	const struct tq_job *job = net->job;
	struct tq_device *dev = &net->dev;
	struct merit merit = {.distance = tq_locality(verbs->device)};

	net->job = &quiet;
	*dev = (struct tq_device){.verbs = verbs, .port_num = port};
	merit.works = !tq_device_check(net);
	merit.infiniband = dev->port.link_layer != IBV_LINK_LAYER_ETHERNET;
	if (merit.works && !merit.infiniband)
		merit.reach = tq_gid_reach(&dev->gid);
	merit.speed = tq_port_speed(&dev->port);
	*dev = (struct tq_device){0};
	net->job = job;
	return merit;
}

/* Adds a port to the list, which the best one begins. Without room the worst one is left out. */
static void list_port(struct choice *choice, const char *device, unsigned number,
		      const struct ibv_port_attr *attr, const struct merit *merit)
{
	struct tq_port port = {
		.number = number,
		.infiniband = merit->infiniband,
		.mtu = 128u << attr->active_mtu,
		.speed = (uint64_t)merit->speed * 8000000,
	};
	unsigned at = choice->nports;

	snprintf(port.device, sizeof(port.device), "%s", device);
	while (at && is_better(merit, &choice->merits[at - 1]))
		at--;
	if (at == choice->room)
		return;
	if (choice->nports < choice->room)
		choice->nports++;
	for (unsigned i = choice->nports - 1; i > at; i--) {
		choice->ports[i] = choice->ports[i - 1];
		choice->merits[i] = choice->merits[i - 1];
	}
	choice->ports[at] = port;
	choice->merits[at] = *merit;
}

static void look_at_ports(struct tq_net *net, struct ibv_context *verbs, unsigned nports,
			  struct choice *choice)
{
	const char *name = ibv_get_device_name(verbs->device);
	struct ibv_port_attr port;
	struct merit merit;
	unsigned i;

	for (i = 1; i <= nports; i++) {
		if (!is_port_allowed(net->params, name, i))
			continue;
		if (ibv_query_port(verbs, (uint8_t)i, &port) || port.state != IBV_PORT_ACTIVE) {
			snprintf(choice->down, sizeof(choice->down), "%s:%u", name, i);
			continue;
		}
		merit = merit_of(net, verbs, (uint8_t)i);
		if (choice->ports && merit.works)
			list_port(choice, name, i, &port, &merit);
		if (!choice->device || is_better(&merit, &choice->merit)) {
			choice->device = verbs->device;
			choice->port = (uint8_t)i;
			choice->merit = merit;
		}
	}
}

static bool has_xrc(struct ibv_context *verbs, const struct ibv_device_attr *attr,
		    struct choice *choice)
{
	const char *missing;
	int error;

	if (!(attr->device_cap_flags & IBV_DEVICE_XRC))
		return false;
	missing = tq_missing_of_xrc(verbs, &error);
	/* A limit is no lack: the verb is there, and a process that runs into the limit later says
	 * so. */
	if (missing && tq_is_limit(error))
		missing = NULL;
	if (missing)
		snprintf(choice->part, sizeof(choice->part), "%s has XRC, but not %s (%s)",
			 ibv_get_device_name(verbs->device), missing, strerror(error));
	return !missing;
}

static void look_at_device(struct tq_net *net, struct ibv_device *device, struct choice *choice)
{
	const struct tq_params *params = net->params;
	const char *name = ibv_get_device_name(device);
	struct ibv_device_attr attr;
	struct ibv_context *verbs;
	size_t said = strlen(choice->there);

	snprintf(choice->there + said, sizeof(choice->there) - said, "%s%s", said ? ", " : "",
		 name);
	if (*params->if_include && !is_device_listed(params->if_include, name))
		return;
	if (is_listed(params->if_exclude, name, 0)) /* the whole device: no port has this number */
		return;
	choice->allowed++;
	verbs = ibv_open_device(device);
	if (!verbs) {
		choice->error = errno;
		return;
	}
	choice->error = ibv_query_device(verbs, &attr);
	if (!choice->error) {
		choice->opened++;
		if (has_xrc(verbs, &attr, choice)) {
			choice->xrc++;
			look_at_ports(net, verbs, attr.phys_port_cnt, choice);
		}
	}
	ibv_close_device(verbs);
}

static int none_will_do(struct tq_net *net, int ndevices, const struct choice *choice)
{
	static const char help[] =
		"On a machine without one, 'softhca run' gives a software adapter.";
	const char *include = net->params->if_include, *exclude = net->params->if_exclude;
	int rc = -ENODEV;

	if (!ndevices) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "No RDMA device was found. Check with ibv_devinfo that the adapter's kernel "
		       "modules and its libibverbs provider are installed. %s",
		       help);
	} else if (!choice->allowed) {
		rc = -EINVAL;
		tq_log(net->job, TQ_LOG_ERROR,
		       "if_include \"%s\" and if_exclude \"%s\" allow none of the RDMA devices "
		       "that there are: %s.",
		       include, exclude, choice->there);
	} else if (!choice->opened) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "The RDMA device could not be opened: %s. Check the permissions of "
		       "/dev/infiniband/uverbs*.",
		       strerror(choice->error));
	} else if (!choice->xrc && *choice->part) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s, by which processes share connections. Use an adapter of the drivers "
		       "mlx4, mlx5 or hns, which have both, or another transport. %s",
		       choice->part, help);
	} else if (!choice->xrc) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "No RDMA device with XRC (extended reliable connections) was found among "
		       "%s. Use an adapter of the drivers mlx4, mlx5 or hns, which have XRC, or "
		       "another transport. %s",
		       choice->there, help);
	} else if (*choice->down) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "Port %s is not active. Check the cable, and on InfiniBand the subnet "
		       "manager; ibv_devinfo shows the port's state.",
		       choice->down);
	} else {
		rc = -EINVAL;
		tq_log(net->job, TQ_LOG_ERROR,
		       "if_include \"%s\" and if_exclude \"%s\" allow no port of the RDMA devices "
		       "that there are: %s. Write DEVICE:PORT.",
		       include, exclude, choice->there);
	}
	return rc;
}

/* Looks at all devices. Returns their list, of which *n are there; or NULL. */
static struct ibv_device **look_at_devices(struct tq_net *net, struct choice *choice, int *n)
{
	struct ibv_device **list;

	/* On kernels before 5.12 the first process that writes to a page after a fork() keeps it,
	 * which may be the child: this keeps the pages of queues and buffers from children. */
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED && ibv_fork_init())
		tq_log(net->job, TQ_LOG_WARN,
		       "ibv_fork_init() failed: a program that calls fork() or system() may lose "
		       "data.");
	list = ibv_get_device_list(n);
	for (int i = 0; list && i < *n; i++)
		look_at_device(net, list[i], choice);
	return list;
}

/* Logs why the best port doesn't work; no other does, either. Returns a negative errno. */
static int none_works(struct tq_net *net, const struct choice *choice)
{
	int rc = -ENODEV;

	net->dev.port_num = choice->port;
	net->dev.verbs = ibv_open_device(choice->device);
	if (!net->dev.verbs)
		return rc;
	rc = tq_device_check(net);
	tq_device_release(net);
	return rc ? rc : -ENODEV;
}

int tq_device_list(struct tq_net *net, struct tq_port *ports, unsigned room)
{
	struct choice choice = {.ports = ports, .room = room};
	struct ibv_device **list;
	int n = 0, rc;

	choice.merits = calloc(room, sizeof(*choice.merits));
	if (!choice.merits)
		return -ENOMEM;
	list = look_at_devices(net, &choice, &n);
	if (!choice.device)
		rc = none_will_do(net, n, &choice);
	else
		rc = choice.nports ? (int)choice.nports : none_works(net, &choice);
	if (list)
		ibv_free_device_list(list);
	free(choice.merits);
	return rc;
}

int tq_device_choose(struct tq_net *net)
{
	struct choice choice = {0};
	struct ibv_device **list;
	int n = 0, rc = 0;

	list = look_at_devices(net, &choice, &n);
	if (!choice.device) {
		rc = none_will_do(net, n, &choice);
	} else {
		net->dev.port_num = choice.port;
		net->dev.verbs = ibv_open_device(choice.device);
		if (!net->dev.verbs) {
			rc = -ENODEV;
			tq_log(net->job, TQ_LOG_ERROR, "%s could not be opened: %s.",
			       ibv_get_device_name(choice.device), strerror(errno));
		}
	}
	if (list)
		ibv_free_device_list(list);
	return rc;
}

void tq_device_release(struct tq_net *net)
{
	ibv_close_device(net->dev.verbs);
	memset(&net->dev, 0, sizeof(net->dev));
}
