/* SPDX-License-Identifier: BSD-3-Clause */
#include "cq.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* The fewest completions that a queue has room for, whatever its user asks for. Open MPI 4.1's
 * mtl/ofi asks for 100, and loses completions if an operation that answers one is refused. */
#define MIN_SIZE   65536
#define FIRST_ROOM 64
/* Polls in vain before a thread sleeps. A choice: to wake a thread takes longer than most messages
 * take, so a thread that polls for a while seldom sleeps; but it keeps a CPU from others. */
#define SPINS 1000

/* Since this version of the interface fi_cq_readerr() also writes the source, behind what earlier
 * versions of struct fi_cq_err_entry have. */
#define SOURCE_VERSION FI_VERSION(1, 20)
#define SOURCE_OFFSET                                      \
	(offsetof(struct fi_cq_err_entry, err_data_size) + \
	 sizeof(((struct fi_cq_err_entry *)0)->err_data_size))

/* ---- adding ---- */

/* Doubles the ring. Returns false without memory. */
static bool grow(struct tf_cq *cq)
{
	size_t room = cq->room ? cq->room * 2 : FIRST_ROOM, count = atomic_load(&cq->count);
	struct tf_completion *ring = calloc(room, sizeof(*ring));

	if (!ring)
		return false;
	for (size_t i = 0; i < count; i++)
		ring[i] = cq->ring[(cq->first + i) & (cq->room - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->room = room;
	cq->first = 0;
	return true;
}

void tf_cq_add(struct tf_cq *cq, const struct tf_completion *completion)
{
	size_t count;

	pthread_mutex_lock(&cq->lock);
	count = atomic_load_explicit(&cq->count, memory_order_relaxed);
	if (count == cq->room && !grow(cq)) {
		pthread_mutex_unlock(&cq->lock);
		tf_log(FI_LOG_WARN, FI_LOG_CQ,
		       "A completion was lost: there is no memory for a queue of %zu completions.",
		       count + 1);
		return;
	}
	cq->ring[(cq->first + count) & (cq->room - 1)] = *completion;
	atomic_store_explicit(&cq->count, count + 1, memory_order_release);
	pthread_mutex_unlock(&cq->lock);
	tf_wait_wake(&cq->wait);
}

/* ---- reading ---- */

/* Writes an entry in the queue's format. Returns the first byte behind it. */
static void *write_entry(const struct tf_cq *cq, const struct tf_completion *completion, void *to)
{
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};

	/* The format of MPI's libraries, with a length that the compiler knows. */
	if (cq->format == FI_CQ_FORMAT_TAGGED) {
		memcpy(to, &completion->entry, sizeof(completion->entry));
		return (char *)to + sizeof(completion->entry);
	}
	/* Each format is the beginning of the next one. */
	memcpy(to, &completion->entry, sizes[cq->format]);
	return (char *)to + sizes[cq->format];
}

/* Takes up to `count` completions. Returns their number, 0 if there is none, or -FI_EAVAIL if the
 * first one is an error. */
static ssize_t take(struct tf_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	size_t there, n = 0;

	if (!atomic_load_explicit(&cq->count, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&cq->lock);
	there = atomic_load_explicit(&cq->count, memory_order_relaxed);
	for (; n < count && n < there; n++) {
		const struct tf_completion *completion = &cq->ring[cq->first];

		if (completion->err)
			break;
		buf = write_entry(cq, completion, buf);
		if (source)
			source[n] = completion->source;
		cq->first = (cq->first + 1) & (cq->room - 1);
	}
	atomic_store_explicit(&cq->count, there - n, memory_order_release);
	pthread_mutex_unlock(&cq->lock);
	return n || !there || !count ? (ssize_t)n : -FI_EAVAIL;
}

static ssize_t readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid);
	ssize_t n = take(cq, buf, count, source);

	if (n)
		return n;
	tf_domain_progress(cq->domain);
	n = take(cq, buf, count, source);
	return n ? n : -FI_EAGAIN;
}

static ssize_t read_cq(struct fid_cq *fid, void *buf, size_t count)
{
	return readfrom(fid, buf, count, NULL);
}

/* Writes an error, with the fields that the caller's version of the interface has. */
static void write_error(const struct tf_cq *cq, const struct tf_completion *completion,
			struct fi_cq_err_entry *to)
{
	const struct fi_cq_tagged_entry *entry = &completion->entry;

	to->op_context = entry->op_context;
	to->flags = entry->flags;
	to->len = entry->len;
	to->buf = entry->buf;
	to->data = entry->data;
	to->tag = entry->tag;
	to->olen = completion->olen;
	to->err = completion->err;
	to->prov_errno = completion->err;
	if (FI_VERSION_GE(cq->domain->api_version, FI_VERSION(1, 5)))
		to->err_data_size = 0;
	if (FI_VERSION_GE(cq->domain->api_version, SOURCE_VERSION))
		memcpy((char *)to + SOURCE_OFFSET, &completion->source, sizeof(completion->source));
}

static ssize_t readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid);
	ssize_t rc = -FI_EAGAIN;
	size_t count;

	(void)flags;
	pthread_mutex_lock(&cq->lock);
	count = atomic_load_explicit(&cq->count, memory_order_relaxed);
	if (count && cq->ring[cq->first].err) {
		write_error(cq, &cq->ring[cq->first], buf);
		cq->first = (cq->first + 1) & (cq->room - 1);
		atomic_store_explicit(&cq->count, count - 1, memory_order_release);
		rc = 1;
	}
	pthread_mutex_unlock(&cq->lock);
	return rc;
}

/* ---- waiting ---- */

static ssize_t sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			 const void *cond, int timeout)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid);
	long long until = tf_wait_until(timeout);
	unsigned polls = 0;
	uint64_t seen;
	ssize_t n;
	int left;

	(void)cond;
	if (cq->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	for (;;) {
		n = readfrom(fid, buf, count, source);
		if (n != -FI_EAGAIN)
			return n;
		if (atomic_exchange(&cq->signaled, false))
			return -FI_EAGAIN;
		if (timeout && ++polls < SPINS)
			continue;
		left = tf_wait_left(until);
		if (!left)
			return -FI_EAGAIN;
		seen = tf_wait_enter(&cq->wait);
		if (!atomic_load(&cq->count) && !atomic_load(&cq->signaled))
			tf_wait_sleep(&cq->wait, seen, left);
		tf_wait_leave(&cq->wait);
	}
}

static ssize_t sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int signal_cq(struct fid_cq *fid)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid);

	if (cq->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	atomic_store(&cq->signaled, true);
	tf_wait_wake(&cq->wait);
	return 0;
}

int tf_cq_trywait(struct fid *fid)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid.fid);

	if (cq->wait.kind == FI_WAIT_NONE)
		return -FI_EINVAL;
	tf_domain_progress(cq->domain);
	if (atomic_load(&cq->count))
		return -FI_EAGAIN;
	tf_wait_arm(&cq->wait);
	return atomic_load(&cq->count) ? -FI_EAGAIN : 0;
}

/* ---- the object ---- */

static const char *text_of(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
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
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid.fid);

	return tf_wait_control(&cq->wait, command, arg);
}

static int close_cq(struct fid *fid)
{
	struct tf_cq *cq = tf_container(fid, struct tf_cq, fid.fid);

	if (atomic_load(&cq->users))
		return -FI_EBUSY;
	tf_wait_fini(&cq->wait);
	pthread_mutex_destroy(&cq->lock);
	atomic_fetch_sub(&cq->domain->users, 1);
	free(cq->ring);
	free(cq);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_cq,
	.bind = tf_no_bind,
	.control = control,
	.ops_open = tf_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops),
	.read = read_cq,
	.readfrom = readfrom,
	.readerr = readerr,
	.sread = sread,
	.sreadfrom = sreadfrom,
	.signal = signal_cq,
	.strerror = text_of,
};

int tf_cq_open(struct fid_domain *fid_domain, struct fi_cq_attr *attr, struct fid_cq **fid,
	       void *context)
{
	struct tf_domain *domain = tf_domain_of(fid_domain);
	struct tf_cq *cq;
	int rc;

	if (attr->format > FI_CQ_FORMAT_TAGGED || attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	rc = tf_wait_init(&cq->wait, attr->wait_obj);
	if (rc) {
		free(cq);
		return rc;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &fid_ops;
	cq->fid.ops = &cq_ops;
	cq->domain = domain;
	cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->size = attr->size > MIN_SIZE ? attr->size : MIN_SIZE;
	pthread_mutex_init(&cq->lock, NULL);
	if (attr->wait_obj != FI_WAIT_NONE)
		tf_domain_need_thread(domain, TQ_THREAD_ALL);
	atomic_fetch_add(&domain->users, 1);
	*fid = &cq->fid;
	return 0;
}
