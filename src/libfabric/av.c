/* SPDX-License-Identifier: BSD-3-Clause */
#include "av.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "service.h"
#include "wait.h"

/* Milliseconds for which operations wait until the process that they go to has been found. Programs
 * count on it that their first operations are not refused, and a process that is there answers much
 * sooner. Later operations don't wait, so that a program that serves many isn't held up. */
#define FIND_MS 1000

static struct tf_av *av_of(struct fid_av *fid)
{
	return tf_container(fid, struct tf_av, fid);
}

/* ---- entries ---- */

/* Returns an entry that is not used, or NULL without memory or room. With the lock. */
static struct tf_dest *new_dest(struct tf_av *av)
{
	struct tf_dest *dest = av->free_list, *chunk;

	if (dest) {
		av->free_list = dest->next_free;
		return dest;
	}
	if (av->used >= (size_t)TF_AV_CHUNK * TF_AV_CHUNKS)
		return NULL;
	chunk = atomic_load(&av->chunks[av->used / TF_AV_CHUNK]);
	if (!chunk) {
		chunk = calloc(TF_AV_CHUNK, sizeof(*chunk));
		if (!chunk)
			return NULL;
		atomic_store_explicit(&av->chunks[av->used / TF_AV_CHUNK], chunk,
				      memory_order_release);
	}
	dest = &chunk[av->used % TF_AV_CHUNK];
	dest->av = av;
	dest->index = av->used++;
	return dest;
}

bool tf_dest_is_gone(const struct tf_dest *dest)
{
	struct tq_peer *tq = atomic_load_explicit(&dest->tq, memory_order_acquire);

	return tq && tq_peer_error(tq);
}

/* Lets the address be found, unless an earlier entry has it, whose process is there. With the
 * lock. */
static void publish(struct tf_av *av, struct tf_dest *dest)
{
	struct tf_dest *first;

	HASH_FIND(hh, av->by_addr, &dest->addr, sizeof(dest->addr), first);
	if (first && tf_dest_is_gone(first)) {
		HASH_DEL(av->by_addr, first);
		first = NULL;
	}
	if (!first)
		HASH_ADD(hh, av->by_addr, addr, sizeof(dest->addr), dest);
}

/* Inserts an address. Returns 0 or a negative error. */
static int insert_one(struct tf_av *av, const struct tf_addr *addr, fi_addr_t *index)
{
	struct tf_peer *peer = NULL;
	struct tq_locator locator;
	struct tf_dest *dest;

	if (addr->kind == TF_ADDR_ENDPOINT) {
		locator = tf_addr_locator(addr);
		peer = tf_peer_get(av->domain, &locator);
		if (!peer)
			return -FI_ENOMEM;
		tf_peer_renew(peer);
	}
	pthread_mutex_lock(&av->lock);
	dest = new_dest(av);
	if (dest) {
		dest->addr = *addr;
		dest->number = tf_addr_endpoint(addr);
		atomic_store(&dest->peer, peer);
		atomic_store(&dest->tq, NULL);
		atomic_store(&dest->until, 0);
		atomic_store(&dest->contexts, NULL);
		for (unsigned kind = 0; kind < TF_KINDS; kind++)
			atomic_store(&dest->ranks[kind], 0);
		dest->used = true;
		publish(av, dest);
		*index = dest->index;
	}
	pthread_mutex_unlock(&av->lock);
	return dest ? 0 : -FI_ENOMEM;
}

/* Lets another entry with the same address be found in place of this one. With the lock. */
static void unpublish(struct tf_av *av, struct tf_dest *dest)
{
	struct tf_dest *first, *other;

	HASH_FIND(hh, av->by_addr, &dest->addr, sizeof(dest->addr), first);
	if (first != dest)
		return;
	HASH_DEL(av->by_addr, dest);
	for (size_t i = 0; i < av->used; i++) {
		other = tf_av_dest(av, i);
		if (other && other != dest &&
		    !memcmp(&other->addr, &dest->addr, sizeof(dest->addr))) {
			publish(av, other);
			return;
		}
	}
}

fi_addr_t tf_av_find(struct tf_av *av, const struct tq_peer *peer, uint32_t number)
{
	fi_addr_t index = FI_ADDR_NOTAVAIL;
	struct tq_locator locator;
	struct tf_dest *dest;
	struct tf_addr addr;

	if (tq_peer_locator(peer, &locator))
		return index;
	addr = tf_addr_make(&locator, number);
	pthread_mutex_lock(&av->lock);
	HASH_FIND(hh, av->by_addr, &addr, sizeof(addr), dest);
	if (dest)
		index = dest->index;
	pthread_mutex_unlock(&av->lock);
	return index;
}

/* Takes the address that a service's host has answered. Without memory it is asked again. */
static int take_answer(struct tf_dest *dest, const struct tf_addr *addr)
{
	const struct tq_locator locator = tf_addr_locator(addr);
	struct tf_peer *peer = tf_peer_get(dest->av->domain, &locator);

	if (!peer)
		return -FI_ENOMEM;
	unpublish(dest->av, dest);
	dest->addr = *addr;
	dest->number = tf_addr_endpoint(addr);
	publish(dest->av, dest);
	atomic_store_explicit(&dest->peer, peer, memory_order_release);
	return 0;
}

int tf_dest_peer(struct tf_dest *dest, struct tf_peer **peer)
{
	struct tf_addr addr;
	int rc = 0;

	*peer = atomic_load_explicit(&dest->peer, memory_order_acquire);
	if (*peer)
		return 0;
	pthread_mutex_lock(&dest->av->lock);
	*peer = atomic_load(&dest->peer);
	if (!*peer) {
		rc = tf_question_ask(&dest->question, &dest->addr, &addr);
		if (!rc)
			rc = take_answer(dest, &addr);
		*peer = atomic_load(&dest->peer);
	}
	pthread_mutex_unlock(&dest->av->lock);
	return rc;
}

/* Sets *tq to the process that the entry stands for. Returns tf_peer_ready()'s results. */
static int ready(struct tf_dest *dest, struct tf_peer *peer, struct tq_peer **tq)
{
	struct tq_peer *first = NULL;
	int rc;

	*tq = atomic_load_explicit(&dest->tq, memory_order_acquire);
	if (*tq)
		return 0;
	rc = tf_peer_ready(peer, tq);
	if (!rc && !atomic_compare_exchange_strong(&dest->tq, &first, *tq))
		*tq = first;
	return rc;
}

int tf_dest_find(struct tf_dest *dest, struct tf_peer **peer, struct tq_peer **tq)
{
	int rc;

	for (;;) {
		long long until = atomic_load(&dest->until);

		rc = tf_dest_peer(dest, peer);
		if (!rc)
			rc = ready(dest, *peer, tq);
		if (rc != -FI_EAGAIN)
			return rc;
		if (!until)
			atomic_store(&dest->until, tf_wait_until(FIND_MS));
		else if (!tf_wait_left(until))
			return -FI_EAGAIN;
		sched_yield();
	}
}

int tf_dest_join(struct tf_dest *dest, enum tf_kind kind, struct tf_contexts *contexts,
		 struct tq_peer *tq, int *rank)
{
	*rank = tq_ctx_join(contexts->ctx[kind], tq);
	if (*rank < 0)
		return *rank;
	atomic_store_explicit(&dest->contexts, contexts, memory_order_release);
	atomic_store_explicit(&dest->ranks[kind], *rank + 1, memory_order_release);
	return 0;
}

/* Joins the process to the contexts of its endpoint's number. */
static int join(struct tf_dest *dest, enum tf_kind kind, int *rank)
{
	struct tf_contexts *contexts = atomic_load(&dest->contexts);
	struct tf_peer *peer;
	struct tq_peer *tq;
	int rc = tf_dest_find(dest, &peer, &tq);

	if (rc)
		return rc;
	if (!contexts)
		contexts = tf_contexts_get(peer->domain, dest->number);
	return contexts ? tf_dest_join(dest, kind, contexts, tq, rank) : -FI_ENOMEM;
}

int tf_dest_resolve(struct tf_dest *dest, enum tf_kind kind, struct tq_ctx **ctx, int *rank)
{
	int rc;

	*rank = tf_dest_rank(dest, kind);
	if (*rank < 0) {
		rc = join(dest, kind, rank);
		if (rc)
			return rc;
	}
	*ctx = atomic_load_explicit(&dest->contexts, memory_order_acquire)->ctx[kind];
	return 0;
}

/* ---- what the user calls ---- */

/* Reports an insertion that has ended, in the event queue. */
static void report(struct tf_av *av, void *context, size_t inserted)
{
	const struct fi_eq_entry entry = {&av->fid.fid, context, inserted};

	tf_eq_add(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
}

static void report_error(struct tf_av *av, void *context, size_t which, int error)
{
	const struct fi_eq_err_entry entry = {
		.fid = &av->fid.fid,
		.context = context,
		.data = which,
		.err = -error,
		.prov_errno = -error,
	};

	tf_eq_add_error(av->eq, &entry);
}

/* Reads address `i` of a list in this format: texts are pointed to. Returns false if it isn't
 * one. */
static bool read_at(struct tf_addr *addr, uint32_t format, const void *list, size_t i)
{
	const char *const *texts = list;

	if (format == FI_ADDR_STR)
		return texts[i] && tf_addr_parse(texts[i], addr);
	return tf_addr_read(addr, format, (const struct tf_addr *)list + i, sizeof(*addr));
}

static int insert_all(struct tf_av *av, uint32_t format, const void *addrs, size_t count,
		      fi_addr_t *indices, uint64_t flags, void *context)
{
	size_t inserted = 0;
	struct tf_addr addr;
	int rc;

	if ((av->events && !av->eq) || (flags & ~(FI_MORE | FI_SYNC_ERR)) || (count && !addrs))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		fi_addr_t index = FI_ADDR_NOTAVAIL;

		rc = read_at(&addr, format, addrs, i) ? insert_one(av, &addr, &index) : -FI_EINVAL;
		if (indices)
			indices[i] = index;
		if (!rc)
			inserted++;
		else if (av->events)
			report_error(av, context, i, rc);
		if ((flags & FI_SYNC_ERR) && context && !av->events)
			((int *)context)[i] = -rc;
	}
	if (av->events) {
		report(av, context, inserted);
		return 0;
	}
	return (int)inserted;
}

static int insert(struct fid_av *fid, const void *addrs, size_t count, fi_addr_t *indices,
		  uint64_t flags, void *context)
{
	struct tf_av *av = av_of(fid);

	return insert_all(av, av->domain->addr_format, addrs, count, indices, flags, context);
}

static int insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *index,
		     uint64_t flags, void *context)
{
	struct tf_addr addr;
	int rc;

	if (!node || (!service && !tf_addr_parse(node, &addr)))
		return -FI_EINVAL;
	rc = tf_service_resolve(node, service, flags & FI_NUMERICHOST, &addr);
	return rc ? rc
		  : insert_all(av_of(fid), TF_ADDR_FORMAT, &addr, 1, index, flags & ~FI_NUMERICHOST,
			       context);
}

static int insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *indices, uint64_t flags, void *context)
{
	char node_name[256], service_name[64];
	struct tf_addr *addrs;
	int rc;

	if (!node || !service || !nodecnt || !svccnt ||
	    nodecnt > SIZE_MAX / sizeof(*addrs) / svccnt)
		return -FI_EINVAL;
	addrs = calloc(nodecnt * svccnt, sizeof(*addrs));
	if (!addrs)
		return -FI_ENOMEM;
	for (size_t i = 0; i < nodecnt * svccnt; i++) {
		rc = -FI_EINVAL;
		if (!tf_service_add(node, i / svccnt, node_name, sizeof(node_name)) ||
		    !tf_service_add(service, i % svccnt, service_name, sizeof(service_name)))
			goto out;
		rc = tf_service_resolve(node_name, service_name, flags & FI_NUMERICHOST, &addrs[i]);
		if (rc)
			goto out;
	}
	rc = insert_all(av_of(fid), TF_ADDR_FORMAT, addrs, nodecnt * svccnt, indices,
			flags & ~FI_NUMERICHOST, context);
out:
	free(addrs);
	return rc;
}

static int remove_addrs(struct fid_av *fid, fi_addr_t *indices, size_t count, uint64_t flags)
{
	struct tf_av *av = av_of(fid);
	int rc = 0;

	if (flags)
		return -FI_EINVAL;
	/* From the last one on, so that the first one is used again first. */
	for (size_t i = count; i--;) {
		struct tf_dest *dest = tf_av_dest(av, indices[i]);

		if (!dest) {
			rc = -FI_EINVAL;
			continue;
		}
		pthread_mutex_lock(&av->lock);
		unpublish(av, dest);
		tf_question_end(&dest->question);
		dest->used = false;
		dest->next_free = av->free_list;
		av->free_list = dest;
		pthread_mutex_unlock(&av->lock);
	}
	return rc;
}

static int lookup(struct fid_av *fid, fi_addr_t index, void *addr, size_t *len)
{
	const struct tf_dest *dest = tf_av_dest(av_of(fid), index);

	if (!dest)
		return -FI_EINVAL;
	*len = tf_addr_write(&dest->addr, dest->av->domain->addr_format, addr, *len);
	return 0;
}

static const char *straddr(struct fid_av *fid, const void *bytes, char *buf, size_t *len)
{
	uint32_t format = av_of(fid)->domain->addr_format;
	struct tf_addr addr = {0};

	read_at(&addr, format, format == FI_ADDR_STR ? (const void *)&bytes : bytes, 0);
	*len = tf_addr_print(&addr, buf, *len);
	return buf;
}

/* ---- the object ---- */

static int bind_av(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tf_av *av = tf_container(fid, struct tf_av, fid.fid);

	(void)flags;
	if (bfid->fclass != FI_CLASS_EQ || av->eq)
		return -FI_EINVAL;
	av->eq = tf_container(bfid, struct tf_eq, fid.fid);
	atomic_fetch_add(&av->eq->users, 1);
	return 0;
}

static int close_av(struct fid *fid)
{
	struct tf_av *av = tf_container(fid, struct tf_av, fid.fid);

	if (atomic_load(&av->users))
		return -FI_EBUSY;
	if (av->eq)
		atomic_fetch_sub(&av->eq->users, 1);
	HASH_CLEAR(hh, av->by_addr);
	for (size_t i = 0; i < av->used; i++) {
		if (tf_av_dest(av, i))
			tf_question_end(&tf_av_dest(av, i)->question);
	}
	for (unsigned i = 0; i < TF_AV_CHUNKS; i++)
		free(atomic_load(&av->chunks[i]));
	pthread_mutex_destroy(&av->lock);
	atomic_fetch_sub(&av->domain->users, 1);
	free(av);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_av,
	.bind = bind_av,
	.control = tf_no_control,
	.ops_open = tf_no_ops_open,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = insert,
	.insertsvc = insertsvc,
	.insertsym = insertsym,
	.remove = remove_addrs,
	.lookup = lookup,
	.straddr = straddr,
};

int tf_av_open(struct fid_domain *fid_domain, struct fi_av_attr *attr, struct fid_av **fid,
	       void *context)
{
	struct tf_domain *domain = tf_domain_of(fid_domain);
	struct tf_av *av;

	/* Vectors that processes share, and those of scalable endpoints, are not there. */
	if (attr->name || attr->rx_ctx_bits || attr->type > FI_AV_TABLE ||
	    (attr->flags & ~FI_EVENT))
		return attr->name || attr->rx_ctx_bits ? -FI_ENOSYS : -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &fid_ops;
	av->fid.ops = &av_ops;
	av->domain = domain;
	av->events = attr->flags & FI_EVENT;
	pthread_mutex_init(&av->lock, NULL);
	/* The caller may have left the choice to the provider. */
	attr->type = attr->type ? attr->type : FI_AV_TABLE;
	atomic_fetch_add(&domain->users, 1);
	*fid = &av->fid;
	return 0;
}
