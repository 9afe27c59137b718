/* SPDX-License-Identifier: BSD-3-Clause */
/* The device: whether it can do what is needed, and its description. Each way to fail has its own
 * sentence, because it is the first thing that goes wrong for a user. */
#include "net/adapter/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "net/adapter/address.h"
#include "net/adapter/objects.h"

/* Inline data (bytes) that a QP is asked for. Room for more would make each WQE larger, which costs
 * more than to copy the data into a registered buffer. */
#define INLINE_WANTED 256u

/* Entries of a RoCE port's GID table that are looked at. */
#define ROCE_GIDS 256

/* The least max_msg_sz of a port. Less would make eager messages of no use; no port has so little.
 */
#define MESSAGE_MIN 4096u

/* The shortest queues that do: a process that connects to itself has its requests and its answers
 * to them in the same queues. */
#define QP_WR_MIN  16
#define SRQ_WR_MIN 16

/* Chooses the GID. RoCE has no LIDs: it is the RoCE v2 GID that reaches furthest, unless the user
 * names one. On InfiniBand a GID is needed only where the port says so. */
static int choose_gid(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	struct ibv_gid_entry entry;
	int best = 0, index;
	uint32_t i;

	dev->gid_index = (int)net->params->gid_index;
	if (dev->gid_index < 0 && dev->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		for (i = 0; i < ROCE_GIDS; i++) {
			if (ibv_query_gid_ex(dev->verbs, dev->port_num, i, &entry, 0) ||
			    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
			    tq_gid_reach(&entry.gid) <= best)
				continue;
			best = tq_gid_reach(&entry.gid);
			dev->gid_index = (int)i;
		}
		if (dev->gid_index < 0) {
			tq_log(net->job, TQ_LOG_ERROR,
			       "%s:%u has no RoCE v2 GID. Give its network interface an IP "
			       "address, or name another GID with gid_index.",
			       ibv_get_device_name(dev->verbs->device), dev->port_num);
			return -EINVAL;
		}
	}
	if (dev->gid_index < 0 && dev->port.flags & IBV_QPF_GRH_REQUIRED)
		dev->gid_index = 0;
	if (dev->gid_index < 0 && net->params->traffic_class) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "traffic_class = %lld: without a global route messages have none. Name a "
		       "GID with gid_index.",
		       (long long)net->params->traffic_class);
		return -EINVAL;
	}
	index = dev->gid_index < 0 ? 0 : dev->gid_index;
	if (ibv_query_gid(dev->verbs, dev->port_num, index, &dev->gid)) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s:%u has no GID of index %d (parameter gid_index).",
		       ibv_get_device_name(dev->verbs->device), dev->port_num, index);
		return -EINVAL;
	}
	return 0;
}

#define PKEY_FULL 0x8000

/* Chooses the partition key. Membership (the upper bit) is not part of a partition's name. A port
 * may be a full member of a partition and a limited one, which reaches only full ones. So the first
 * key of the partition with full membership is taken. */
static int choose_pkey(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	uint16_t wanted = (uint16_t)net->params->pkey & ~PKEY_FULL, partition, i;
	const char *name = ibv_get_device_name(dev->verbs->device);
	bool found = false;
	__be16 pkey;

	for (i = 0; i < dev->port.pkey_tbl_len && !(found && (dev->pkey & PKEY_FULL)); i++) {
		if (ibv_query_pkey(dev->verbs, dev->port_num, i, &pkey))
			break;
		partition = be16toh(pkey) & ~PKEY_FULL;
		if (wanted ? partition != wanted : !partition)
			continue;
		if (found && !(be16toh(pkey) & PKEY_FULL))
			continue;
		found = true;
		dev->pkey = be16toh(pkey);
		dev->pkey_index = i;
	}
	if (!found) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s:%u has no partition key 0x%04x (parameter pkey).", name, dev->port_num,
		       wanted);
		return -EINVAL;
	}
	if (!(dev->pkey & PKEY_FULL))
		tq_log(net->job, TQ_LOG_WARN,
		       "%s:%u is a limited member of its partition (0x%04x): it reaches full "
		       "members only.",
		       name, dev->port_num, dev->pkey);
	return 0;
}

static int choose_mtu(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	int64_t wanted = net->params->mtu;
	enum ibv_mtu mtu;

	dev->mtu = dev->port.active_mtu;
	if (!wanted)
		return 0;
	for (mtu = IBV_MTU_256; mtu <= dev->port.active_mtu; mtu++) {
		if (128 << mtu == wanted) {
			dev->mtu = mtu;
			return 0;
		}
	}
	tq_log(net->job, TQ_LOG_ERROR,
	       "An MTU of %lld bytes is not possible: %s:%u takes 256, 512, 1024, 2048 or 4096 up "
	       "to %d.",
	       (long long)wanted, ibv_get_device_name(dev->verbs->device), dev->port_num,
	       128 << dev->port.active_mtu);
	return -EINVAL;
}

static bool choose_odp(struct tq_net *net)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE |
				IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex attr;

	if (net->params->odp == TQ_ODP_OFF)
		return false;
	if (!ibv_query_device_ex(net->dev.verbs, NULL, &attr) &&
	    (attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) &&
	    (attr.xrc_odp_caps & needed) == needed)
		return true;
	tq_log(net->job, net->params->odp == TQ_ODP_ON ? TQ_LOG_WARN : TQ_LOG_DEBUG,
	       "%s has no implicit on-demand paging on XRC: buffers are registered one by one.",
	       ibv_get_device_name(net->dev.verbs->device));
	return false;
}

/* Finds out how much an INI QP takes inline, which is known only by making one. */
static int probe_inline(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp = NULL;
	struct ibv_cq *cq;
	uint32_t want;
	int rc = 0;

	cq = ibv_create_cq(dev->verbs, 1, NULL, NULL, 0);
	if (!cq)
		return -errno;
	for (want = INLINE_WANTED;; want /= 2) {
		attr = (struct ibv_qp_init_attr_ex){
			.send_cq = cq,
			.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = want},
			.qp_type = IBV_QPT_XRC_SEND,
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.pd = dev->pd,
		};
		qp = ibv_create_qp_ex(dev->verbs, &attr);
		if (qp || !want)
			break;
	}
	if (qp) {
		/* More may be granted than was asked for, but that depends on the number of
		 * SGEs. */
		dev->max_inline = want;
		ibv_destroy_qp(qp);
	} else {
		rc = -errno;
	}
	ibv_destroy_cq(cq);
	return rc;
}

static void describe(struct tq_device *dev)
{
	char where[80];

	if (dev->port.link_layer == IBV_LINK_LAYER_ETHERNET)
		snprintf(where, sizeof(where), "RoCE, GID index %d", dev->gid_index);
	else
		snprintf(where, sizeof(where), "LID %u", dev->port.lid);
	snprintf(dev->text, sizeof(dev->text), "%s port %u (%s), %d-byte MTU%s",
		 ibv_get_device_name(dev->verbs->device), dev->port_num, where, 128 << dev->mtu,
		 dev->odp ? ", implicit ODP" : "");
}

unsigned tq_port_speed(const struct ibv_port_attr *port)
{
	/* Bytes that a lane carries in a microsecond, without the coding (IBA 14.2.5.6). */
	static const struct {
		unsigned code, speed;
	} lanes[] = {{1, 250},   {2, 500},   {4, 1000},  {8, 1250},
		     {16, 1705}, {32, 3125}, {64, 6250}, {128, 12500}};
	static const struct {
		uint8_t code, lanes;
	} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	unsigned speed = 0;

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		if (port->active_speed == lanes[i].code)
			speed = lanes[i].speed;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (port->active_width == widths[i].code)
			return speed * widths[i].lanes;
	return 0;
}

int tq_device_check(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	const char *name = ibv_get_device_name(dev->verbs->device);
	int rc;

	if (ibv_query_device(dev->verbs, &dev->attr) ||
	    ibv_query_port(dev->verbs, dev->port_num, &dev->port)) {
		tq_log(net->job, TQ_LOG_ERROR, "The attributes of %s:%u can't be queried.", name,
		       dev->port_num);
		return -ENODEV;
	}
	if (dev->attr.max_srq < TQ_CLASSES || dev->attr.max_srq_wr < SRQ_WR_MIN ||
	    dev->attr.max_srq_sge < 1 || dev->attr.max_sge < 1) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s offers %d shared receive queues of %d entries: too few, %d of %d are "
		       "needed.",
		       name, dev->attr.max_srq, dev->attr.max_srq_wr, TQ_CLASSES, SRQ_WR_MIN);
		return -ENODEV;
	}
	if (dev->attr.max_qp_wr < QP_WR_MIN) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s offers queue pairs of %d entries at most: too few, %d are needed.", name,
		       dev->attr.max_qp_wr, QP_WR_MIN);
		return -ENODEV;
	}
	if (dev->port.max_msg_sz < MESSAGE_MIN) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "%s:%u takes messages of %u bytes at most: too short, %u are needed.", name,
		       dev->port_num, dev->port.max_msg_sz, MESSAGE_MIN);
		return -ENODEV;
	}
	rc = choose_gid(net);
	if (!rc)
		rc = choose_pkey(net);
	if (!rc)
		rc = choose_mtu(net);
	return rc;
}

const char *tq_limit_hint(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOMEM:
		return " (either the limit of locked memory is too low: raise it, ulimit -l; or "
		       "the adapter has no more of these: let fewer processes share it)";
	case ENOSPC:
		return " (cq_depth, or the adapter's limit of it, is too small)";
	}
	return "";
}

/* Makes the file of asynchronous events non-blocking, for tq_device_events(). */
static int unblock_events(const struct tq_net *net)
{
	struct ibv_context *verbs = net->dev.verbs;
	int flags = fcntl(verbs->async_fd, F_GETFL), error;

	if (flags >= 0 && !fcntl(verbs->async_fd, F_SETFL, flags | O_NONBLOCK))
		return 0;
	error = errno;
	tq_log(net->job, TQ_LOG_ERROR, "The events of %s can't be read without waiting: %s.",
	       ibv_get_device_name(verbs->device), strerror(error));
	return -error;
}

void tq_device_events(struct tq_net *net)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(net->dev.verbs, &event)) {
		if (event.event_type == IBV_EVENT_CQ_ERR)
			tq_net_set_broken(net, "a completion queue of the adapter is in error");
		else if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			tq_net_set_broken(net, "the adapter is in error");
		ibv_ack_async_event(&event);
	}
}

int tq_device_open(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	int rc;

	rc = tq_device_check(net);
	if (rc)
		return rc;
	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd) {
		rc = -errno;
		tq_log(net->job, TQ_LOG_ERROR, "No protection domain can be made on %s: %s%s.",
		       ibv_get_device_name(dev->verbs->device), strerror(-rc), tq_limit_hint(rc));
		return rc;
	}
	rc = probe_inline(net);
	if (rc) {
		tq_log(net->job, TQ_LOG_ERROR, "No XRC queue pair can be made on %s: %s%s.",
		       ibv_get_device_name(dev->verbs->device), strerror(-rc), tq_limit_hint(rc));
		goto dealloc;
	}
	rc = unblock_events(net);
	if (rc)
		goto dealloc;
	dev->odp = choose_odp(net);
	describe(dev);
	return 0;

dealloc:
	ibv_dealloc_pd(dev->pd);
	return rc;
}

void tq_device_close(struct tq_net *net)
{
	ibv_dealloc_pd(net->dev.pd);
}
