/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "active.h"
#include "atomic.h"
#include "av.h"
#include "cntr.h"
#include "cq.h"
#include "domain_open.h"
#include "ep_open.h"
#include "eq.h"
#include "info.h"
#include "mr.h"
#include "object.h"
#include "poll_set.h"
#include "target.h"
#include "log.h"

/* ---- what a domain can do ---- */

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context)
{
	(void)domain;
	(void)info;
	(void)sep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		      void *context)
{
	(void)domain;
	(void)attr;
	(void)stx;
	(void)context;
	return -FI_ENOSYS;
}

static int no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context)
{
	(void)domain;
	(void)attr;
	(void)rx_ep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			       struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)coll;
	(void)attr;
	(void)flags;
	return -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = tf_av_open,
	.cq_open = tf_cq_open,
	.endpoint = tf_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = tf_cntr_open,
	.poll_open = tf_poll_open,
	.stx_ctx = no_stx_ctx,
	.srx_ctx = no_srx_ctx,
	.query_atomic = tf_query_atomic,
	.query_collective = no_query_collective,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		       void *context)
{
	int rc = tf_domain_open(tf_fabric_of(fabric), info, domain, context);

	if (rc)
		return rc;
	(*domain)->ops = &domain_ops;
	(*domain)->mr = &tf_mr_ops;
	rc = tf_active_open(tf_domain_of(*domain), tf_target);
	if (rc)
		fi_close(&(*domain)->fid);
	return rc;
}

/* ---- what a fabric can do ---- */

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	(void)fabric;
	(void)info;
	(void)pep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset)
{
	(void)fabric;
	(void)attr;
	(void)waitset;
	return -FI_ENOSYS;
}

/* Arms the objects. Returns -FI_EAGAIN if one has an event, so that the caller must not sleep. */
static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int rc = 0, one;

	(void)fabric;
	for (int i = 0; i < count; i++) {
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			one = tf_cq_trywait(fids[i]);
			break;
		case FI_CLASS_CNTR:
			one = tf_cntr_trywait(fids[i]);
			break;
		case FI_CLASS_EQ:
			one = tf_eq_trywait(fids[i]);
			break;
		default:
			return -FI_EINVAL;
		}
		if (one && rc != -FI_EINVAL)
			rc = one;
	}
	return rc;
}

static struct fi_ops_fabric fabric_ops = {
	.size = offsetof(struct fi_ops_fabric, domain2),
	.domain = domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = tf_eq_open,
	.wait_open = no_wait_open,
	.trywait = trywait,
};

static int fabric_close(struct fid *fid)
{
	struct tf_fabric *fabric = tf_container(fid, struct tf_fabric, fid.fid);

	if (atomic_load(&fabric->users))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = fabric_close,
	.bind = tf_no_bind,
	.control = tf_no_control,
	.ops_open = tf_no_ops_open,
};

int tf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	struct tf_fabric *fabric;

	if (attr->name && strcmp(attr->name, TF_FABRIC_NAME))
		return -FI_ENODATA;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*fid = &fabric->fid;
	return 0;
}
