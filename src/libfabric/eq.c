/* SPDX-License-Identifier: BSD-3-Clause */
#include "eq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#define DEFAULT_SIZE 1024
/* The most bytes of an event that a user writes. */
#define MAX_DATA 4096

struct tf_event {
	struct tf_event *prev, *next;
	uint32_t kind;
	bool error; /* `data` is a struct fi_eq_err_entry */
	size_t len;
	char data[];
};

static struct tf_eq *eq_of(struct fid_eq *fid)
{
	return tf_container(fid, struct tf_eq, fid);
}

/* ---- adding ---- */

static int add(struct tf_eq *eq, uint32_t kind, const void *data, size_t len, bool error)
{
	struct tf_event *event = malloc(sizeof(*event) + len);

	if (!event)
		return -FI_ENOMEM;
	event->kind = kind;
	event->error = error;
	event->len = len;
	memcpy(event->data, data, len);
	pthread_mutex_lock(&eq->lock);
	DL_APPEND(eq->events, event);
	eq->count++;
	pthread_mutex_unlock(&eq->lock);
	tf_wait_wake(&eq->wait);
	return 0;
}

int tf_eq_add(struct tf_eq *eq, uint32_t event, const void *data, size_t len)
{
	return add(eq, event, data, len, false);
}

int tf_eq_add_error(struct tf_eq *eq, const struct fi_eq_err_entry *error)
{
	return add(eq, 0, error, sizeof(*error), true);
}

static ssize_t write_event(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			   uint64_t flags)
{
	struct tf_eq *eq = eq_of(fid);
	bool full;
	int rc;

	if (!eq->writable || flags || len > MAX_DATA)
		return -FI_EINVAL;
	pthread_mutex_lock(&eq->lock);
	full = eq->count >= eq->size;
	pthread_mutex_unlock(&eq->lock);
	if (full)
		return -FI_EAGAIN;
	rc = tf_eq_add(eq, event, buf, len);
	return rc ? rc : (ssize_t)len;
}

/* ---- reading ---- */

/* Takes the first event out of the queue, unless the user only looks (FI_PEEK). With the lock. */
static void take(struct tf_eq *eq, struct tf_event *event, uint64_t flags)
{
	if (flags & FI_PEEK)
		return;
	DL_DELETE(eq->events, event);
	eq->count--;
	free(event);
}

static ssize_t read_event(struct fid_eq *fid, uint32_t *kind, void *buf, size_t len, uint64_t flags)
{
	struct tf_eq *eq = eq_of(fid);
	ssize_t rc = -FI_EAGAIN;
	struct tf_event *event;

	pthread_mutex_lock(&eq->lock);
	event = eq->events;
	if (event && event->error) {
		rc = -FI_EAVAIL;
	} else if (event && event->len > len) {
		rc = -FI_ETOOSMALL;
	} else if (event) {
		*kind = event->kind;
		memcpy(buf, event->data, event->len);
		rc = (ssize_t)event->len;
		take(eq, event, flags);
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static ssize_t read_error(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct tf_eq *eq = eq_of(fid);
	ssize_t rc = -FI_EAGAIN;
	struct tf_event *event;

	pthread_mutex_lock(&eq->lock);
	event = eq->events;
	if (event && event->error) {
		memcpy(buf, event->data, sizeof(*buf));
		rc = sizeof(*buf);
		take(eq, event, flags);
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static bool is_empty(struct tf_eq *eq)
{
	bool empty;

	pthread_mutex_lock(&eq->lock);
	empty = !eq->events;
	pthread_mutex_unlock(&eq->lock);
	return empty;
}

static ssize_t sread(struct fid_eq *fid, uint32_t *kind, void *buf, size_t len, int timeout,
		     uint64_t flags)
{
	struct tf_eq *eq = eq_of(fid);
	long long until = tf_wait_until(timeout);
	uint64_t seen;
	ssize_t rc;
	int left;

	if (eq->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	for (;;) {
		rc = read_event(fid, kind, buf, len, flags);
		left = tf_wait_left(until);
		if (rc != -FI_EAGAIN || !left)
			return rc;
		seen = tf_wait_enter(&eq->wait);
		if (is_empty(eq))
			tf_wait_sleep(&eq->wait, seen, left);
		tf_wait_leave(&eq->wait);
	}
}

int tf_eq_trywait(struct fid *fid)
{
	struct tf_eq *eq = tf_container(fid, struct tf_eq, fid.fid);

	if (eq->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	if (!is_empty(eq))
		return -FI_EAGAIN;
	tf_wait_arm(&eq->wait);
	return is_empty(eq) ? 0 : -FI_EAGAIN;
}

/* ---- the object ---- */

static const char *text_of(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			   size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid;
	(void)err_data;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

static int control(struct fid *fid, int command, void *arg)
{
	struct tf_eq *eq = tf_container(fid, struct tf_eq, fid.fid);

	return tf_wait_control(&eq->wait, command, arg);
}

static int close_eq(struct fid *fid)
{
	struct tf_eq *eq = tf_container(fid, struct tf_eq, fid.fid);
	struct tf_event *event, *tmp;

	if (atomic_load(&eq->users))
		return -FI_EBUSY;
	DL_FOREACH_SAFE(eq->events, event, tmp) {
		free(event);
	}
	tf_wait_fini(&eq->wait);
	pthread_mutex_destroy(&eq->lock);
	atomic_fetch_sub(&eq->fabric->users, 1);
	free(eq);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_eq,
	.bind = tf_no_bind,
	.control = control,
	.ops_open = tf_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = read_event,
	.readerr = read_error,
	.write = write_event,
	.sread = sread,
	.strerror = text_of,
};

int tf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
	       void *context)
{
	struct tf_eq *eq = calloc(1, sizeof(*eq));
	int rc;

	if (!eq)
		return -FI_ENOMEM;
	rc = tf_wait_init(&eq->wait, attr->wait_obj);
	if (rc) {
		free(eq);
		return rc;
	}
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &fid_ops;
	eq->fid.ops = &eq_ops;
	eq->fabric = tf_fabric_of(fabric);
	eq->writable = attr->flags & FI_WRITE;
	eq->size = attr->size ? attr->size : DEFAULT_SIZE;
	pthread_mutex_init(&eq->lock, NULL);
	atomic_fetch_add(&eq->fabric->users, 1);
	*fid = &eq->fid;
	return 0;
}
