/* SPDX-License-Identifier: BSD-3-Clause */
#include "poll_set.h"

#include <pthread.h>
#include <stdlib.h>

#include <utlist.h>

#include "cntr.h"
#include "cq.h"
#include "domain.h"

/* A queue or a counter in the set. */
struct member {
	struct fid *fid;
	uint64_t value, errors; /* of a counter, when it was reported last */
	struct member *prev, *next;
};

struct set {
	struct fid_poll fid;
	struct tf_domain *domain;
	pthread_mutex_t lock;
	struct member *members; /* list; guarded by the lock */
};

/* Returns the count of users of a queue or a counter. */
static atomic_uint *users_of(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return &tf_container(fid, struct tf_cq, fid.fid)->users;
	return &tf_container(fid, struct tf_cntr, fid.fid)->users;
}

/* Returns true if the queue has completions, or the counter has changed. */
static bool has_events(struct member *member)
{
	const struct tf_cntr *cntr;
	uint64_t value, errors;
	bool changed;

	if (member->fid->fclass == FI_CLASS_CQ)
		return atomic_load(&tf_container(member->fid, struct tf_cq, fid.fid)->count);
	cntr = tf_container(member->fid, struct tf_cntr, fid.fid);
	value = atomic_load(&cntr->value);
	errors = atomic_load(&cntr->errors);
	changed = value != member->value || errors != member->errors;
	member->value = value;
	member->errors = errors;
	return changed;
}

static int poll_set(struct fid_poll *fid, void **contexts, int count)
{
	struct set *set = tf_container(fid, struct set, fid);
	struct member *member;
	int n = 0;

	tf_domain_progress(set->domain);
	pthread_mutex_lock(&set->lock);
	DL_FOREACH(set->members, member) {
		if (n == count)
			break;
		if (has_events(member))
			contexts[n++] = member->fid->context;
	}
	pthread_mutex_unlock(&set->lock);
	return n;
}

static int add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct set *set = tf_container(fid, struct set, fid);
	struct member *member;

	if (flags || (event_fid->fclass != FI_CLASS_CQ && event_fid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = event_fid;
	atomic_fetch_add(users_of(event_fid), 1);
	pthread_mutex_lock(&set->lock);
	DL_APPEND(set->members, member);
	pthread_mutex_unlock(&set->lock);
	return 0;
}

/* Removes a member, which was taken out of the list. */
static void drop(struct member *member)
{
	atomic_fetch_sub(users_of(member->fid), 1);
	free(member);
}

static int del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct set *set = tf_container(fid, struct set, fid);
	struct member *member;

	if (flags)
		return -FI_EINVAL;
	pthread_mutex_lock(&set->lock);
	DL_FOREACH(set->members, member) {
		if (member->fid == event_fid)
			break;
	}
	if (member)
		DL_DELETE(set->members, member);
	pthread_mutex_unlock(&set->lock);
	if (!member)
		return -FI_EINVAL;
	drop(member);
	return 0;
}

static int close_set(struct fid *fid)
{
	struct set *set = tf_container(fid, struct set, fid.fid);
	struct member *member, *tmp;

	DL_FOREACH_SAFE(set->members, member, tmp) {
		drop(member);
	}
	pthread_mutex_destroy(&set->lock);
	atomic_fetch_sub(&set->domain->users, 1);
	free(set);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_set,
	.bind = tf_no_bind,
	.control = tf_no_control,
	.ops_open = tf_no_ops_open,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(poll_ops),
	.poll = poll_set,
	.poll_add = add,
	.poll_del = del,
};

int tf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **fid)
{
	struct set *set;

	if (attr && attr->flags)
		return -FI_EINVAL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &fid_ops;
	set->fid.ops = &poll_ops;
	set->domain = tf_domain_of(domain);
	pthread_mutex_init(&set->lock, NULL);
	atomic_fetch_add(&set->domain->users, 1);
	*fid = &set->fid;
	return 0;
}
