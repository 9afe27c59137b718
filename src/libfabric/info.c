/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "addr.h"
#include "hints.h"
#include "nic.h"
#include "log.h"
#include "params.h"
#include "service.h"
#include "vector.h"

#define MAX_PORTS 64
/* The format of tags whose 64 bits can be used in any way. */
#define ANY_TAG_FORMAT UINT64_C(0xaaaaaaaaaaaaaaaa)
#define MAX_COUNT      ((size_t)1 << 20) /* of objects; memory ends earlier */
/* Later versions of libfabric have structures with more fields at the end, which they expect to be
 * zero: all are allocated with this many bytes more. */
#define SPARE 128

/* ---- ports ---- */

/* The ports of this host, looked for once: that takes a while, and callers ask often. */
static struct {
	pthread_mutex_t lock;
	struct tq_port *ports;
	int n; /* 0: not looked for, or none was there */
} found = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Looks for ports. With the lock. */
static void find_ports(void)
{
	const struct tq_job job = {.log = tf_log_transport};
	struct tq_params *params = tf_params();
	int n = 0;

	if (!params)
		return;
	if (!found.ports)
		found.ports = calloc(MAX_PORTS, sizeof(*found.ports));
	if (found.ports)
		n = tq_ports(params, &job, found.ports, MAX_PORTS);
	found.n = n > 0 ? n : 0;
	tq_params_free(params);
}

void tf_info_cleanup(void)
{
	pthread_mutex_lock(&found.lock);
	free(found.ports);
	found.ports = NULL;
	found.n = 0;
	pthread_mutex_unlock(&found.lock);
}

/* ---- one port ---- */

static void fill_in_tx(struct fi_tx_attr *attr, const struct fi_tx_attr *hints, uint64_t caps)
{
	attr->caps = caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_FENCE | TF_ONE_SIDED) &
		     ~(FI_REMOTE_READ | FI_REMOTE_WRITE);
	attr->msg_order = TF_ORDER;
	attr->inject_size = TF_INJECT_SIZE;
	attr->size = hints && hints->size ? hints->size : tf_params_tx_size();
	attr->iov_limit = TF_IOV_LIMIT;
	attr->rma_iov_limit = TF_IOV_LIMIT;
	attr->op_flags = hints ? hints->op_flags : 0;
}

static void fill_in_rx(struct fi_rx_attr *attr, const struct fi_rx_attr *hints, uint64_t caps)
{
	attr->caps = caps &
		     (FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV |
		      TF_ONE_SIDED | FI_RMA_EVENT) &
		     ~(FI_READ | FI_WRITE);
	attr->msg_order = TF_ORDER;
	attr->total_buffered_recv = hints ? hints->total_buffered_recv : 0;
	attr->size = hints && hints->size ? hints->size : TF_RX_SIZE;
	attr->iov_limit = TF_IOV_LIMIT;
	attr->op_flags = hints ? hints->op_flags : 0;
}

static void fill_in_ep(struct fi_ep_attr *attr, const struct fi_ep_attr *hints)
{
	attr->type = FI_EP_RDM;
	attr->protocol = TF_PROTOCOL;
	attr->protocol_version = TF_PROTOCOL_VERSION;
	attr->max_msg_size = TF_MAX_MESSAGE;
	/* All bits of a tag can be used in any way. */
	attr->mem_tag_format =
		hints && hints->mem_tag_format ? hints->mem_tag_format : ANY_TAG_FORMAT;
	attr->tx_ctx_cnt = 1;
	attr->rx_ctx_cnt = 1;
}

static void fill_in_domain(struct fi_domain_attr *attr, const struct fi_domain_attr *hints)
{
	attr->threading = hints && hints->threading ? hints->threading : FI_THREAD_SAFE;
	attr->control_progress =
		hints && hints->control_progress ? hints->control_progress : FI_PROGRESS_AUTO;
	attr->data_progress =
		hints && hints->data_progress ? hints->data_progress : FI_PROGRESS_AUTO;
	attr->resource_mgmt = FI_RM_ENABLED;
	attr->av_type = hints && hints->av_type ? hints->av_type : FI_AV_TABLE;
	attr->mr_key_size = sizeof(uint64_t);
	attr->cq_data_size = sizeof(uint64_t);
	attr->cq_cnt = MAX_COUNT;
	attr->ep_cnt = MAX_COUNT;
	attr->tx_ctx_cnt = MAX_COUNT;
	attr->rx_ctx_cnt = MAX_COUNT;
	attr->max_ep_tx_ctx = 1;
	attr->max_ep_rx_ctx = 1;
	attr->cntr_cnt = MAX_COUNT;
	attr->mr_iov_limit = 1;
	attr->mr_cnt = MAX_COUNT;
	attr->caps = TF_DOMAIN_CAP;
}

/* Returns memory for a structure, and the fields that it may get. */
static void *allocate(size_t size)
{
	return calloc(1, size + SPARE);
}

static struct fi_info *allocate_info(void)
{
	struct fi_info *info = allocate(sizeof(*info));

	if (!info)
		return NULL;
	info->tx_attr = allocate(sizeof(*info->tx_attr));
	info->rx_attr = allocate(sizeof(*info->rx_attr));
	info->ep_attr = allocate(sizeof(*info->ep_attr));
	info->domain_attr = allocate(sizeof(*info->domain_attr));
	info->fabric_attr = allocate(sizeof(*info->fabric_attr));
	if (!info->tx_attr || !info->rx_attr || !info->ep_attr || !info->domain_attr ||
	    !info->fabric_attr) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

static uint32_t addr_format(const struct fi_info *hints)
{
	return hints && hints->addr_format ? hints->addr_format : TF_ADDR_FORMAT;
}

/* Returns the description of a port for such hints; NULL without memory. */
static struct fi_info *make_info(uint32_t version, const struct fi_info *hints,
				 const struct tq_port *port)
{
	struct fi_info *info = allocate_info();
	char name[96];

	if (!info)
		return NULL;
	info->caps = tf_hints_caps(version, hints);
	info->addr_format = addr_format(hints);
	fill_in_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
	fill_in_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
	fill_in_ep(info->ep_attr, hints ? hints->ep_attr : NULL);
	fill_in_domain(info->domain_attr, hints ? hints->domain_attr : NULL);
	info->domain_attr->mr_mode = tf_hints_mr_mode(version, hints, info->caps);
	snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
	info->domain_attr->name = strdup(name);
	info->fabric_attr->name = strdup(TF_FABRIC_NAME);
	info->fabric_attr->prov_version = tf_provider.version;
	info->fabric_attr->api_version = version;
	info->nic = tf_nic_new(port);
	if (!info->domain_attr->name || !info->fabric_attr->name || !info->nic) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* ---- addresses ---- */

/* Sets an address in this format. Returns 0 or -FI_ENOMEM. */
static int set_addr(void **addr, size_t *len, uint32_t format, const struct tf_addr *value)
{
	char text[TF_ADDR_TEXT];

	*len = tf_addr_write(value, format, text, sizeof(text));
	*addr = malloc(*len);
	if (!*addr)
		return -FI_ENOMEM;
	memcpy(*addr, text, *len);
	return 0;
}

/* The addresses that the caller has named. */
struct addrs {
	struct tf_addr source, dest;
	bool has_dest;
};

/* Finds out the addresses. Returns 0 or -FI_ENODATA. */
static int find_addrs(const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct addrs *addrs)
{
	struct tf_addr named;

	/* An endpoint has an address whatever its name is. */
	addrs->source = tf_addr_service(0, 0);
	addrs->has_dest = hints && hints->dest_addr;
	if (hints && hints->src_addr)
		tf_addr_read(&addrs->source, hints->addr_format, hints->src_addr,
			     hints->src_addrlen);
	if (addrs->has_dest)
		tf_addr_read(&addrs->dest, hints->addr_format, hints->dest_addr,
			     hints->dest_addrlen);
	if (!node && !service)
		return 0;
	if (tf_service_resolve(node, service, flags, &named))
		return -FI_ENODATA;
	if (flags & FI_SOURCE) {
		addrs->source = named;
	} else {
		addrs->dest = named;
		addrs->has_dest = true;
	}
	return 0;
}

static int set_addrs(struct fi_info *info, const struct addrs *addrs)
{
	int rc = set_addr(&info->src_addr, &info->src_addrlen, info->addr_format, &addrs->source);

	if (!rc && addrs->has_dest)
		rc = set_addr(&info->dest_addr, &info->dest_addrlen, info->addr_format,
			      &addrs->dest);
	return rc;
}

/* ---- all ---- */

/* Returns true if the caller's domain, by its name or an open one, is this port. */
static bool is_wanted(const struct fi_info *hints, const struct tq_port *port)
{
	const char *domain = hints && hints->domain_attr ? hints->domain_attr->name : NULL;
	const char *fabric = hints && hints->fabric_attr ? hints->fabric_attr->name : NULL;
	char name[96];

	snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
	if (fabric && strcmp(fabric, TF_FABRIC_NAME))
		return false;
	return !domain || !strcmp(domain, name) || !strcmp(domain, port->device);
}

int tf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **list)
{
	struct fi_info **last = list;
	struct addrs addrs;
	int rc;

	*list = NULL;
	if (!tf_hints_fit(version, hints) || find_addrs(node, service, flags, hints, &addrs))
		return -FI_ENODATA;
	pthread_mutex_lock(&found.lock);
	if (!found.n)
		find_ports();
	rc = 0;
	for (int i = 0; i < found.n && !rc; i++) {
		if (!is_wanted(hints, &found.ports[i]))
			continue;
		*last = make_info(version, hints, &found.ports[i]);
		rc = *last ? set_addrs(*last, &addrs) : -FI_ENOMEM;
		if (*last)
			last = &(*last)->next;
	}
	pthread_mutex_unlock(&found.lock);
	if (rc) {
		fi_freeinfo(*list);
		*list = NULL;
	}
	return rc ? rc : *list ? 0 : -FI_ENODATA;
}
