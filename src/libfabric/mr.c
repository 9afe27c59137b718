/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "cntr.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define LOCAL  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
/* Nothing to do for these: registrations end at once, and pages are pinned or paged on demand. */
#define IGNORED_FLAGS (FI_RMA_EVENT | FI_RMA_PMEM)

/* ---- uses ---- */

/* Returns true if the registration covers the memory. */
static bool covers(const struct tf_mr *mr, uint64_t addr, size_t len)
{
	uint64_t first = (uintptr_t)mr->addr;

	return addr >= first && len <= mr->len && addr - first <= mr->len - len;
}

struct tq_mr *tf_mr_local(void *desc, const void *addr, size_t len, bool write)
{
	const struct tf_mr *mr = desc;

	if (!mr || !covers(mr, (uintptr_t)addr, len) || (write && !(mr->access & FI_REMOTE_WRITE)))
		return NULL;
	return mr->tq;
}

struct tf_mr *tf_mr_find(struct tf_domain *domain, uint64_t key, uint64_t addr, size_t len,
			 uint64_t access, int *error)
{
	struct tf_mr *mr;

	HASH_FIND(hh, domain->mrs, &key, sizeof(key), mr);
	*error = !mr                               ? -FI_ENOKEY
		 : (mr->access & access) != access ? -FI_EACCES
		 : !covers(mr, addr, len)          ? -FI_EFAULT
						   : 0;
	return *error ? NULL : mr;
}

void tf_mr_count(struct tf_domain *domain, uint64_t key, bool read)
{
	struct tf_mr *mr;

	HASH_FIND(hh, domain->mrs, &key, sizeof(key), mr);
	if (mr)
		tf_cntr_count(read ? mr->reads : mr->writes, false);
}

/* ---- the object ---- */

static int close_mr(struct fid *fid)
{
	struct tf_mr *mr = tf_container(fid, struct tf_mr, fid.fid);

	if (mr->tq) {
		pthread_mutex_lock(&mr->domain->lock);
		HASH_DEL(mr->domain->mrs, mr);
		pthread_mutex_unlock(&mr->domain->lock);
		tq_mr_deregister(mr->tq);
	}
	if (mr->reads)
		atomic_fetch_sub(&mr->reads->users, 1);
	if (mr->writes)
		atomic_fetch_sub(&mr->writes->users, 1);
	atomic_fetch_sub(&mr->domain->users, 1);
	free(mr);
	return 0;
}

static void set_cntr(struct tf_cntr **place, struct tf_cntr *cntr)
{
	*place = cntr;
	atomic_fetch_add(&cntr->users, 1);
}

/* Binds a counter. An endpoint may be named, too, but a registration belongs to the domain. */
static int bind_mr(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tf_mr *mr = tf_container(fid, struct tf_mr, fid.fid);
	bool reads = flags & FI_REMOTE_READ, writes = flags & FI_REMOTE_WRITE;
	struct tf_cntr *cntr;
	int rc = 0;

	if (bfid->fclass == FI_CLASS_EP)
		return 0;
	if (bfid->fclass != FI_CLASS_CNTR || !flags || (flags & ~REMOTE))
		return -FI_EINVAL;
	/* Peers don't tell of what they do with such a key. */
	if (!tf_key_has_events(mr->fid.key))
		return -FI_ENOSYS;
	cntr = tf_container(bfid, struct tf_cntr, fid.fid);
	pthread_mutex_lock(&mr->domain->lock);
	if ((reads && mr->reads) || (writes && mr->writes))
		rc = -FI_EBUSY;
	if (!rc && reads)
		set_cntr(&mr->reads, cntr);
	if (!rc && writes)
		set_cntr(&mr->writes, cntr);
	pthread_mutex_unlock(&mr->domain->lock);
	return rc;
}

static int control_mr(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_mr,
	.bind = bind_mr,
	.control = control_mr,
	.ops_open = tf_no_ops_open,
};

/* Returns the rights of peers in libtupleq's terms. Whoever may write may also use the adapter's
 * atomic operations, if it has any. */
static unsigned rights_of(const struct tf_domain *domain, uint64_t access)
{
	unsigned rights = 0;

	if (access & FI_REMOTE_READ)
		rights |= TQ_ACCESS_READ;
	if (access & FI_REMOTE_WRITE)
		rights |= TQ_ACCESS_WRITE;
	if ((access & FI_REMOTE_WRITE) && tq_rma_atomics(domain->tq))
		rights |= TQ_ACCESS_ATOMIC;
	return rights;
}

/* Returns true if the memory is a device's. Callers of earlier versions don't say. */
static bool is_device(const struct tf_domain *domain, const struct fi_mr_attr *attr)
{
	return FI_VERSION_GE(domain->api_version, FI_VERSION(1, 10)) &&
	       attr->iface != FI_HMEM_SYSTEM;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		   struct fid_mr **out)
{
	struct tf_domain *domain = tf_container(fid, struct tf_domain, fid.fid);
	struct tf_mr *mr;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || (flags & ~IGNORED_FLAGS) || attr->iov_count != 1 ||
	    attr->offset || (attr->access & ~(LOCAL | REMOTE)) || is_device(domain, attr))
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &fid_ops;
	mr->fid.mem_desc = mr;
	mr->domain = domain;
	mr->addr = attr->mr_iov->iov_base;
	mr->len = attr->mr_iov->iov_len;
	mr->access = attr->access;
	mr->fid.key = FI_KEY_NOTAVAIL;
	if ((attr->access & REMOTE) && mr->len) {
		rc = tq_mr_expose(domain->tq, mr->addr, mr->len, rights_of(domain, attr->access),
				  &mr->tq);
		if (rc) {
			free(mr);
			return rc;
		}
		mr->fid.key = tq_mr_key(mr->tq);
		if ((flags & FI_RMA_EVENT) || atomic_load(&domain->events))
			mr->fid.key |= TF_KEY_EVENTS;
		pthread_mutex_lock(&domain->lock);
		HASH_ADD(hh, domain->mrs, fid.key, sizeof(mr->fid.key), mr);
		pthread_mutex_unlock(&domain->lock);
	}
	atomic_fetch_add(&domain->users, 1);
	*out = &mr->fid;
	return 0;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return regattr(fid, &attr, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
	       uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr tf_mr_ops = {
	.size = sizeof(tf_mr_ops),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
