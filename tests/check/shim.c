/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.c - a library in front of libibverbs, for the faults of a host that no adapter can be asked
 * for. CHECK_SHIM chooses one: "rights" (the device can't be opened), "down" (its ports are down),
 * "unready" (its attributes can't be queried) or "gone" (the device goes when QPs get connected).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int (*query_port)(struct ibv_context *verbs, uint8_t number, struct ibv_port_attr *attr,
			 size_t len);

static bool is_chosen(const char *fault)
{
	const char *chosen = getenv("CHECK_SHIM");

	return chosen && !strcmp(chosen, fault);
}

static int query_port_down(struct ibv_context *verbs, uint8_t number, struct ibv_port_attr *attr,
			   size_t len)
{
	int error = query_port(verbs, number, attr, len);

	if (!error)
		attr->state = IBV_PORT_DOWN;
	return error;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*next)(struct ibv_device *) = dlsym(RTLD_NEXT, "ibv_open_device");
	struct verbs_context *more;
	struct ibv_context *verbs;

	if (is_chosen("rights")) {
		errno = EACCES;
		return NULL;
	}
	verbs = next(device);
	more = verbs ? verbs_get_ctx_op(verbs, query_port) : NULL;
	if (more && is_chosen("down")) {
		query_port = more->query_port;
		more->query_port = query_port_down;
	}
	return verbs;
}

int ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr)
{
	int (*next)(struct ibv_context *, struct ibv_device_attr *) =
		dlsym(RTLD_NEXT, "ibv_query_device");

	return is_chosen("unready") ? EIO : next(verbs, attr);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int) = dlsym(RTLD_NEXT, "ibv_modify_qp");

	return is_chosen("gone") ? EIO : next(qp, attr, mask);
}
