/* SPDX-License-Identifier: BSD-3-Clause */
#include "cntr.h"

#include <sched.h>
#include <stdlib.h>

/* Polls in vain before a thread sleeps: see cq.c. */
#define SPINS 1000

static struct tf_cntr *cntr_of(struct fid_cntr *fid)
{
	return tf_container(fid, struct tf_cntr, fid);
}

/* ---- values ---- */

void tf_cntr_count(struct tf_cntr *cntr, bool error)
{
	if (!cntr)
		return;
	atomic_fetch_add(error ? &cntr->errors : &cntr->value, 1);
	tf_wait_wake(&cntr->wait);
}

static uint64_t read_value(struct fid_cntr *fid)
{
	struct tf_cntr *cntr = cntr_of(fid);

	tf_domain_progress(cntr->domain);
	return atomic_load(&cntr->value);
}

static uint64_t read_errors(struct fid_cntr *fid)
{
	struct tf_cntr *cntr = cntr_of(fid);

	tf_domain_progress(cntr->domain);
	return atomic_load(&cntr->errors);
}

static int add(struct fid_cntr *fid, uint64_t value)
{
	struct tf_cntr *cntr = cntr_of(fid);

	atomic_fetch_add(&cntr->value, value);
	tf_wait_wake(&cntr->wait);
	return 0;
}

static int set(struct fid_cntr *fid, uint64_t value)
{
	struct tf_cntr *cntr = cntr_of(fid);

	atomic_store(&cntr->value, value);
	tf_wait_wake(&cntr->wait);
	return 0;
}

static int add_errors(struct fid_cntr *fid, uint64_t value)
{
	struct tf_cntr *cntr = cntr_of(fid);

	atomic_fetch_add(&cntr->errors, value);
	tf_wait_wake(&cntr->wait);
	return 0;
}

static int set_errors(struct fid_cntr *fid, uint64_t value)
{
	struct tf_cntr *cntr = cntr_of(fid);

	atomic_store(&cntr->errors, value);
	tf_wait_wake(&cntr->wait);
	return 0;
}

/* ---- waiting ---- */

static int wait_for(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct tf_cntr *cntr = cntr_of(fid);
	uint64_t errors = atomic_load(&cntr->errors);
	long long until = tf_wait_until(timeout);
	unsigned polls = 0;
	uint64_t seen;
	int left;

	for (;;) {
		if (atomic_load(&cntr->value) >= threshold)
			return 0;
		if (atomic_load(&cntr->errors) != errors)
			return -FI_EAVAIL;
		tf_domain_progress(cntr->domain);
		if (timeout && ++polls < SPINS)
			continue;
		left = tf_wait_left(until);
		if (!left)
			return atomic_load(&cntr->value) >= threshold ? 0 : -FI_ETIMEDOUT;
		if (cntr->wait.kind == FI_WAIT_NONE) {
			sched_yield();
			continue;
		}
		seen = tf_wait_enter(&cntr->wait);
		if (atomic_load(&cntr->value) < threshold && atomic_load(&cntr->errors) == errors)
			tf_wait_sleep(&cntr->wait, seen, left);
		tf_wait_leave(&cntr->wait);
	}
}

int tf_cntr_trywait(struct fid *fid)
{
	struct tf_cntr *cntr = tf_container(fid, struct tf_cntr, fid.fid);
	uint64_t value = atomic_load(&cntr->value), errors = atomic_load(&cntr->errors);

	if (cntr->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	tf_domain_progress(cntr->domain);
	tf_wait_arm(&cntr->wait);
	return atomic_load(&cntr->value) == value && atomic_load(&cntr->errors) == errors
		       ? 0
		       : -FI_EAGAIN;
}

/* ---- the object ---- */

static int control(struct fid *fid, int command, void *arg)
{
	struct tf_cntr *cntr = tf_container(fid, struct tf_cntr, fid.fid);

	return tf_wait_control(&cntr->wait, command, arg);
}

static int close_cntr(struct fid *fid)
{
	struct tf_cntr *cntr = tf_container(fid, struct tf_cntr, fid.fid);

	if (atomic_load(&cntr->users))
		return -FI_EBUSY;
	tf_wait_fini(&cntr->wait);
	atomic_fetch_sub(&cntr->domain->users, 1);
	free(cntr);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_cntr,
	.bind = tf_no_bind,
	.control = control,
	.ops_open = tf_no_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(cntr_ops),
	.read = read_value,
	.readerr = read_errors,
	.add = add,
	.set = set,
	.wait = wait_for,
	.adderr = add_errors,
	.seterr = set_errors,
};

int tf_cntr_open(struct fid_domain *fid_domain, struct fi_cntr_attr *attr, struct fid_cntr **fid,
		 void *context)
{
	struct tf_domain *domain = tf_domain_of(fid_domain);
	enum fi_wait_obj kind = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct tf_cntr *cntr;
	int rc;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags))
		return -FI_EINVAL;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	rc = tf_wait_init(&cntr->wait, kind);
	if (rc) {
		free(cntr);
		return rc;
	}
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &fid_ops;
	cntr->fid.ops = &cntr_ops;
	cntr->domain = domain;
	if (kind != FI_WAIT_NONE)
		tf_domain_need_thread(domain, TQ_THREAD_ALL);
	atomic_fetch_add(&domain->users, 1);
	*fid = &cntr->fid;
	return 0;
}
