/* SPDX-License-Identifier: BSD-3-Clause */
#include "ep_open.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>

#include "atomic.h"
#include "ep.h"
#include "info.h"
#include "msg.h"
#include "params.h"
#include "peek.h"
#include "recv.h"
#include "rma.h"
#include "tagged.h"

static struct tf_ep *ep_of_fid(struct fid *fid)
{
	return tf_container(fid, struct tf_ep, fid.fid);
}

/* ---- options ---- */

static ssize_t cancel(fid_t fid, void *context)
{
	return tf_recv_cancel(ep_of_fid(fid), context);
}

static int getopt_ep(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct tf_ep *ep = ep_of_fid(fid);
	size_t size;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (name) {
	case FI_OPT_MIN_MULTI_RECV:
		size = atomic_load(&ep->min_multi_recv);
		break;
	case FI_OPT_TX_SIZE:
		size = ep->tx.size;
		break;
	case FI_OPT_RX_SIZE:
		size = ep->rx.size;
		break;
	case FI_OPT_CM_DATA_SIZE:
		size = 0;
		break;
	default:
		return -FI_ENOPROTOOPT;
	}
	if (*len < sizeof(size)) {
		*len = sizeof(size);
		return -FI_ETOOSMALL;
	}
	*len = sizeof(size);
	memcpy(value, &size, sizeof(size));
	return 0;
}

static int setopt_ep(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct tf_ep *ep = ep_of_fid(fid);
	size_t size;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len < sizeof(size))
		return -FI_EINVAL;
	memcpy(&size, value, sizeof(size));
	/* A buffer without a byte left is used up in any case. */
	atomic_store(&ep->min_multi_recv, size ? size : 1);
	return 0;
}

static int no_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		     void *context)
{
	(void)fid;
	(void)index;
	(void)attr;
	(void)tx_ep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		     void *context)
{
	(void)fid;
	(void)index;
	(void)attr;
	(void)rx_ep;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t size_left(const struct tf_side *side)
{
	size_t busy = atomic_load(&side->busy);

	return busy < side->size ? (ssize_t)(side->size - busy) : 0;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
	return tf_ep_of(fid)->enabled ? size_left(&tf_ep_of(fid)->rx) : -FI_EOPBADSTATE;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	return tf_ep_of(fid)->enabled ? size_left(&tf_ep_of(fid)->tx) : -FI_EOPBADSTATE;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(ep_ops),
	.cancel = cancel,
	.getopt = getopt_ep,
	.setopt = setopt_ep,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

/* ---- the name ---- */

static int no_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

static struct tf_addr addr_of(const struct tf_ep *ep)
{
	return tf_addr_make(&ep->domain->locator, ep->contexts->number);
}

static int getname(fid_t fid, void *addr, size_t *len)
{
	const struct tf_ep *ep = ep_of_fid(fid);
	const struct tf_addr name = addr_of(ep);
	size_t room = *len;

	*len = tf_addr_write(&name, ep->domain->addr_format, addr, room);
	return room < *len ? -FI_ETOOSMALL : 0;
}

static int no_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	(void)fid;
	(void)addr;
	(void)len;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *fid, const void *addr, const void *param, size_t len)
{
	(void)fid;
	(void)addr;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *fid, const void *param, size_t len)
{
	(void)fid;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *fid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)fid;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(cm_ops),
	.setname = no_setname,
	.getname = getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

/* ---- binding ---- */

static int bind_side(struct tf_side *side, struct tf_cq *cq, uint64_t flags)
{
	if (side->cq)
		return -FI_EINVAL;
	side->cq = cq;
	side->selective = flags & FI_SELECTIVE_COMPLETION;
	atomic_fetch_add(&cq->users, 1);
	return 0;
}

static int bind_cq(struct tf_ep *ep, struct tf_cq *cq, uint64_t flags)
{
	int rc = 0;

	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT)
		rc = bind_side(&ep->tx, cq, flags);
	if (!rc && (flags & FI_RECV))
		rc = bind_side(&ep->rx, cq, flags);
	return rc;
}

static int bind_cntr(struct tf_ep *ep, struct tf_cntr *cntr, uint64_t flags)
{
	static const uint64_t bits[TF_COUNTS] = {
		[TF_COUNT_SEND] = FI_SEND,
		[TF_COUNT_RECV] = FI_RECV,
		[TF_COUNT_READ] = FI_READ,
		[TF_COUNT_WRITE] = FI_WRITE,
		[TF_COUNT_REMOTE_READ] = FI_REMOTE_READ,
		[TF_COUNT_REMOTE_WRITE] = FI_REMOTE_WRITE,
	};

	for (unsigned i = 0; i < TF_COUNTS; i++) {
		if (!(flags & bits[i]))
			continue;
		if (ep->cntrs[i])
			return -FI_EINVAL;
		ep->cntrs[i] = cntr;
		atomic_fetch_add(&cntr->users, 1);
	}
	return 0;
}

static int bind_ep(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tf_ep *ep = ep_of_fid(fid);

	switch (bfid->fclass) {
	case FI_CLASS_AV:
		if (ep->av)
			return -FI_EINVAL;
		ep->av = tf_container(bfid, struct tf_av, fid.fid);
		atomic_fetch_add(&ep->av->users, 1);
		return 0;
	case FI_CLASS_CQ:
		return bind_cq(ep, tf_container(bfid, struct tf_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, tf_container(bfid, struct tf_cntr, fid.fid), flags);
	case FI_CLASS_EQ:
		return 0; /* an endpoint without a connection has no events */
	default:
		return -FI_EINVAL;
	}
}

/* ---- enabling ---- */

static int enable(struct tf_ep *ep)
{
	if (!ep->av)
		return -FI_ENOAV;
	/* A counter alone does, too. */
	if ((!ep->tx.cq && !ep->cntrs[TF_COUNT_SEND] && (ep->caps & FI_SEND)) ||
	    (!ep->rx.cq && !ep->cntrs[TF_COUNT_RECV] && (ep->caps & FI_RECV)))
		return -FI_ENOCQ;
	ep->enabled = true;
	return 0;
}

/* Returns the side whose flags FI_GETOPSFLAG and FI_SETOPSFLAG name, or NULL. */
static struct tf_side *side_of_flags(struct tf_ep *ep, uint64_t flags)
{
	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		return &ep->tx;
	case FI_RECV:
		return &ep->rx;
	default:
		return NULL;
	}
}

static int control(struct fid *fid, int command, void *arg)
{
	struct tf_ep *ep = ep_of_fid(fid);
	struct tf_side *side;
	uint64_t *flags = arg;

	switch (command) {
	case FI_ENABLE:
		return enable(ep);
	case FI_GETOPSFLAG:
		side = side_of_flags(ep, *flags);
		if (!side)
			return -FI_EINVAL;
		*flags = side->op_flags;
		return 0;
	case FI_SETOPSFLAG:
		side = side_of_flags(ep, *flags);
		if (!side)
			return -FI_EINVAL;
		side->op_flags = *flags & ~(FI_TRANSMIT | FI_RECV);
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* ---- closing ---- */

static void unbind(struct tf_ep *ep)
{
	if (ep->tx.cq)
		atomic_fetch_sub(&ep->tx.cq->users, 1);
	if (ep->rx.cq)
		atomic_fetch_sub(&ep->rx.cq->users, 1);
	for (unsigned i = 0; i < TF_COUNTS; i++) {
		if (ep->cntrs[i])
			atomic_fetch_sub(&ep->cntrs[i]->users, 1);
	}
	if (ep->av)
		atomic_fetch_sub(&ep->av->users, 1);
}

static int close_ep(struct fid *fid)
{
	struct tf_ep *ep = ep_of_fid(fid);
	struct tf_domain *domain = ep->domain;

	/* Messages that come from now on are dropped, so that their senders don't wait. */
	pthread_mutex_lock(&domain->lock);
	atomic_store(&ep->contexts->ep, NULL);
	pthread_mutex_unlock(&domain->lock);
	pthread_mutex_lock(&ep->lock);
	ep->closed = true;
	pthread_mutex_unlock(&ep->lock);
	tf_recv_end_all(ep);
	tf_peek_end_all(ep);
	for (unsigned kind = 0; kind < TF_KINDS; kind++)
		tq_ctx_set_flags(ep->contexts->ctx[kind], TQ_CTX_CLOSED);
	tf_name_end(ep->name);
	unbind(ep);
	tf_ep_release(ep);
	atomic_fetch_sub(&domain->users, 1);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_ep,
	.bind = bind_ep,
	.control = control,
	.ops_open = tf_no_ops_open,
};

/* ---- opening ---- */

/* Gives the endpoint the service that the user has asked for. Returns 0 or a negative error. */
static int give_name(struct tf_ep *ep, const struct fi_info *info)
{
	const struct tf_addr addr = addr_of(ep);
	struct tf_addr service;

	if (!info->src_addr ||
	    !tf_addr_read(&service, info->addr_format, info->src_addr, info->src_addrlen))
		return 0;
	return tf_name_give(&service, &addr, &ep->name);
}

static void fill_in(struct tf_ep *ep, const struct fi_info *info)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.ops = &fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &tf_msg_ops;
	ep->fid.tagged = &tf_tagged_ops;
	ep->fid.rma = &tf_rma_ops;
	ep->fid.atomic = &tf_atomic_ops;
	ep->caps = info->caps;
	ep->inject_size = info->tx_attr ? info->tx_attr->inject_size : TF_INJECT_SIZE;
	ep->tx.size =
		info->tx_attr && info->tx_attr->size ? info->tx_attr->size : tf_params_tx_size();
	ep->rx.size = info->rx_attr && info->rx_attr->size ? info->rx_attr->size : TF_RX_SIZE;
	ep->tx.op_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx.op_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	atomic_init(&ep->min_multi_recv, TF_MIN_MULTI_RECV);
	atomic_init(&ep->refs, 1);
	pthread_mutex_init(&ep->lock, NULL);
}

int tf_ep_open(struct fid_domain *fid_domain, struct fi_info *info, struct fid_ep **fid,
	       void *context)
{
	struct tf_domain *domain = tf_domain_of(fid_domain);
	struct tf_ep *ep;
	uint32_t number;
	int rc;

	if (!info || (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
		      info->ep_attr->type != FI_EP_UNSPEC))
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	pthread_mutex_lock(&domain->lock);
	number = domain->next_number++;
	pthread_mutex_unlock(&domain->lock);
	ep->contexts = tf_contexts_get(domain, number);
	if (!ep->contexts) {
		free(ep);
		return -FI_ENOMEM;
	}
	ep->domain = domain;
	fill_in(ep, info);
	if (ep->caps & FI_RMA_EVENT)
		atomic_store(&domain->events, true);
	ep->fid.fid.context = context;
	rc = give_name(ep, info);
	if (rc) {
		tf_ep_release(ep);
		return rc;
	}
	atomic_store(&ep->contexts->ep, ep);
	atomic_fetch_add(&domain->users, 1);
	*fid = &ep->fid;
	return 0;
}
