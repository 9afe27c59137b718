/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/adapter/objects.h"

#define READ   IBV_ACCESS_REMOTE_READ
#define ACCESS (READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* The memory behind all of the sink mapping. */
#define SINK_PIECE ((size_t)2 << 20)
/* The sink mapping takes up to 1/SINK_SHARE of the memlock limit: all of it counts as locked, and
 * buffers need the rest. */
#define SINK_SHARE 4

struct tq_mr {
	struct tq_reg reg;
	struct ibv_mr *mr;
	struct tq_stats *stats;
	struct tq_mr *next; /* tq_mem.abandoned */
};

static void fill_reg(struct tq_reg *reg, const struct ibv_mr *mr)
{
	reg->lkey = mr->lkey;
	reg->rkey = mr->rkey;
}

/* Returns the verbs' rights for those that tq_mr_expose() gives. Verbs want the local right with
 * each remote one that changes memory (ibv_reg_mr(3)). */
static int rights(const struct tq_net *net, unsigned access)
{
	int r = 0;

	if (access & TQ_ACCESS_READ)
		r |= IBV_ACCESS_REMOTE_READ;
	if (access & TQ_ACCESS_WRITE)
		r |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (access & TQ_ACCESS_ATOMIC && net->limits.has_atomics)
		r |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return r;
}

int tq_mem_register(struct tq_net *net, void *addr, size_t len, unsigned access, struct tq_mr **mr)
{
	struct tq_mr *made = malloc(sizeof(*made));
	int rc;

	if (!made)
		return -ENOMEM;
	made->mr = ibv_reg_mr(net->dev.pd, addr, len, rights(net, access));
	if (!made->mr) {
		rc = errno == EAGAIN ? -ENOMEM : -errno;
		if (rc == -ENOMEM)
			atomic_store_explicit(&net->mem->full, true, memory_order_relaxed);
		free(made);
		return rc;
	}
	fill_reg(&made->reg, made->mr);
	made->stats = net->stats;
	/* These counters are changed without the endpoint's lock. */
	atomic_fetch_add_explicit(&net->stats->registrations, 1, memory_order_relaxed);
	TQ_LEVEL_SHARED(net->stats, registered_bytes, (int64_t)len);
	TQ_LEVEL_SHARED(net->stats, registered, 1);
	*mr = made;
	return 0;
}

/* Frees memory of the library's own that nothing uses. Returns false if there is none. */
static bool free_idle(struct tq_net *net)
{
	if (!net->mem->free_idle || !net->mem->free_idle(net))
		return false;
	TQ_COUNT(net->stats, reg_evicted);
	return true;
}

/* Ends registrations that nothing uses, after one failed with `rc`: idle ones of the cache, or else
 * memory of the library's own. Returns true if another try may succeed. */
static bool make_room(struct tq_net *net, int rc)
{
	tq_assert_held(net->lock);
	if (rc != -ENOMEM && rc != -EAGAIN)
		return false;
	if (!net->cache || !net->cache->make_room || !net->cache->make_room(net->cache->arg))
		return free_idle(net);
	TQ_COUNT(net->stats, reg_evicted);
	return true;
}

/* Registers memory of the library's own. NULL: errno says why not. */
static struct ibv_mr *register_own(struct tq_net *net, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;
	int rc;

	do {
		mr = ibv_reg_mr(net->dev.pd, addr, len, access);
		rc = mr ? 0 : errno;
	} while (rc && make_room(net, -rc));
	if (rc)
		errno = rc;
	return mr;
}

int tq_mem_expose(struct tq_net *net, void *addr, size_t len, unsigned access, struct tq_mr **mr)
{
	int rc;

	tq_assert_held(net->lock);
	do
		rc = tq_mem_register(net, addr, len, access, mr);
	while (rc && make_room(net, rc));
	return rc;
}

void tq_mem_deregister(struct tq_mr *mr)
{
	TQ_LEVEL_SHARED(mr->stats, registered_bytes, -(int64_t)mr->mr->length);
	TQ_LEVEL_SHARED(mr->stats, registered, -1);
	ibv_dereg_mr(mr->mr);
	free(mr);
}

void tq_mem_count_outdated(struct tq_mr *mr)
{
	atomic_fetch_add_explicit(&mr->stats->outdated, 1, memory_order_relaxed);
}

struct tq_reg *tq_mem_reg_of(struct tq_mr *mr)
{
	return mr ? &mr->reg : NULL;
}

uint32_t tq_mem_key(const struct tq_mr *mr)
{
	return mr->reg.rkey;
}

void tq_mem_abandon(struct tq_net *net, struct tq_mr *mr)
{
	tq_assert_held(net->lock);
	LL_PREPEND(net->mem->abandoned, mr);
	TQ_LEVEL(net->stats, abandoned, 1);
}

/* Warns once that messages are slow from here on, although nothing fails. */
static void warn_full(struct tq_net *net)
{
	if (net->mem->warned)
		return;
	net->mem->warned = true;
	tq_log(net->job, tq_host_level(net->job, "registration"),
	       "Messages are copied in pieces, which is slow: their buffers can't be registered, "
	       "as either no more memory can be locked, or the adapter has no more registrations "
	       "(max_mr %d). Raise the limit of locked memory (ulimit -l; memlock in "
	       "/etc/security/limits.conf; LimitMEMLOCK of the service that starts processes), "
	       "or let fewer processes share the adapter.",
	       net->dev.attr.max_mr);
}

/* Gets the registration of a user's buffer. NULL: it can't be registered; if that is for lack of
 * memory, tq_mem.full is true. */
static struct tq_mr *get_registration(struct tq_net *net, void *addr, uint64_t len, bool write,
				      void **cookie)
{
	unsigned access = TQ_ACCESS_READ | (write ? TQ_ACCESS_WRITE : 0);
	struct tq_mr *mr;

	/* The cache may make room by dropping idle registrations. */
	atomic_store_explicit(&net->mem->full, false, memory_order_relaxed);
	if (net->cache)
		return net->cache->get(net->cache->arg, addr, len, write, cookie);
	return tq_mem_register(net, addr, len, access, &mr) ? NULL : mr;
}

struct tq_reg *tq_mem_reg_get(struct tq_net *net, void *addr, uint64_t len, bool write,
			      void **cookie)
{
	struct tq_mr *mr;

	tq_assert_held(net->lock);
	if (net->mem->all[write])
		return &net->mem->all_reg[write];
	do
		mr = get_registration(net, addr, len, write, cookie);
	while (!mr && atomic_load_explicit(&net->mem->full, memory_order_relaxed) &&
	       free_idle(net));
	if (!mr) {
		TQ_COUNT(net->stats, reg_failed);
		if (atomic_load_explicit(&net->mem->full, memory_order_relaxed))
			warn_full(net);
		return NULL;
	}
	return &mr->reg;
}

void tq_mem_reg_put(struct tq_net *net, struct tq_reg *reg, void *cookie)
{
	tq_assert_held(net->lock);
	if (net->mem->all[0])
		return;
	if (net->cache)
		net->cache->put(net->cache->arg, cookie);
	else
		tq_mem_deregister((struct tq_mr *)reg);
}

void *tq_mem_alloc(struct tq_net *net, size_t len, struct tq_reg *reg)
{
	struct tq_own *own = malloc(sizeof(*own));
	int rc;

	if (!own)
		goto no_memory;
	own->len = len;
	own->addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own->addr == MAP_FAILED)
		goto free;
	own->mr = register_own(net, own->addr, len, ACCESS);
	if (!own->mr)
		goto unmap;
	fill_reg(reg, own->mr);
	LL_PREPEND(net->mem->own, own);
	TQ_LEVEL(net->stats, own_bytes, (int64_t)len);
	return own->addr;

unmap:
	rc = errno;
	munmap(own->addr, len);
	errno = rc;
free:
	free(own);
no_memory:
	return NULL;
}

void tq_mem_free(struct tq_net *net, void *addr)
{
	struct tq_own *own;

	LL_SEARCH_SCALAR(net->mem->own, own, addr, addr);
	assert(own);
	LL_DELETE(net->mem->own, own);
	TQ_LEVEL(net->stats, own_bytes, -(int64_t)own->len);
	ibv_dereg_mr(own->mr);
	munmap(own->addr, own->len);
	free(own);
}

/* ---- the sink ---- */

/* Maps a large range of addresses to the same few pages: whatever is written there is lost. The
 * whole range counts as locked memory. */
static int sink_map(struct tq_mem *mem, size_t len)
{
	size_t piece = len < SINK_PIECE ? len : SINK_PIECE, at;
	char *range;
	int fd, rc;

	fd = memfd_create("tupleq-sink", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)piece))
		goto close;
	range = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (range == MAP_FAILED)
		goto close;
	for (at = 0; at < len; at += piece)
		if (mmap(range + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			goto unmap;
	close(fd);
	mem->sink_range = range;
	mem->sink_range_len = len;
	return 0;

unmap:
	rc = errno;
	munmap(range, len);
	errno = rc;
close:
	rc = -errno;
	close(fd);
	return rc;
}

/* Returns the size of the sink mapping to try first: a power of two, for pieces that fill it. */
static size_t sink_range_size(const struct tq_net *net)
{
	uint64_t wanted = (uint64_t)net->params->sink, len = TQ_PAGE;
	struct rlimit limit;

	if (wanted > net->limits.max_send)
		wanted = net->limits.max_send;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    wanted > limit.rlim_cur / SINK_SHARE)
		wanted = limit.rlim_cur / SINK_SHARE;
	while (len * 2 <= wanted)
		len *= 2;
	return (size_t)len;
}

static void sink_range_open(struct tq_net *net)
{
	struct tq_mem *mem = net->mem;
	int error = 0;
	size_t len;

	for (len = sink_range_size(net); len >= TQ_PAGE; len /= 2) {
		error = -sink_map(mem, len);
		if (error)
			break;
		mem->sink = register_own(net, mem->sink_range, len, IBV_ACCESS_LOCAL_WRITE);
		if (mem->sink)
			return;
		error = errno;
		munmap(mem->sink_range, len);
		mem->sink_range = NULL;
	}
	tq_log(net->job, TQ_LOG_WARN,
	       "No message goes to a tuple queue, because no memory can be registered to take the "
	       "end of messages that are too long: %s%s.",
	       strerror(error), tq_limit_hint(error));
}

static void sink_open(struct tq_net *net)
{
	struct tq_device *dev = &net->dev;
	struct tq_mem *mem = net->mem;
	size_t used = strlen(dev->text);
	const char *what = "no sink";

	/* The sink is one more piece of each receive. */
	if (dev->attr.max_srq_sge < 2)
		goto describe;
	if (net->params->null_mr) {
		do
			mem->sink = ibv_alloc_null_mr(dev->pd);
		while (!mem->sink && make_room(net, -errno));
	}
	if (mem->sink) {
		net->limits.max_direct = net->limits.max_send;
		what = "null MR";
	} else {
		sink_range_open(net);
		net->limits.max_direct = mem->sink ? mem->sink_range_len : 0;
		if (mem->sink)
			what = "sink mapping";
	}
describe:
	snprintf(dev->text + used, sizeof(dev->text) - used, ", %s", what);
}

bool tq_mem_get_sink(struct tq_net *net, struct ibv_sge *sge)
{
	const struct tq_mem *mem = net->mem;

	if (!mem->sink)
		return false;
	sge->addr = (uintptr_t)mem->sink_range;
	sge->lkey = mem->sink->lkey;
	sge->length = (uint32_t)net->limits.max_direct;
	return true;
}

/* ---- the whole address space, by ODP ---- */

static void all_close(struct tq_mem *mem)
{
	for (int write = 0; write < 2; write++) {
		if (mem->all[write])
			ibv_dereg_mr(mem->all[write]);
		mem->all[write] = NULL;
	}
}

static void all_open(struct tq_net *net)
{
	struct tq_mem *mem = net->mem;
	int error;

	for (int write = 0; write < 2; write++) {
		mem->all[write] = register_own(net, NULL, SIZE_MAX,
					       (write ? ACCESS : READ) | IBV_ACCESS_ON_DEMAND);
		if (mem->all[write]) {
			fill_reg(&mem->all_reg[write], mem->all[write]);
			continue;
		}
		error = errno;
		all_close(mem);
		tq_log(net->job, TQ_LOG_WARN,
		       "The address space can't be registered on demand (%s): buffers are "
		       "registered one by one.",
		       strerror(error));
		return;
	}
}

/* ---- opening and closing ---- */

int tq_mem_open(struct tq_net *net)
{
	struct tq_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return -ENOMEM;
	net->mem = mem;
	if (net->dev.odp)
		all_open(net);
	sink_open(net);
	return 0;
}

void tq_mem_close(struct tq_net *net)
{
	struct tq_mem *mem = net->mem;
	struct tq_mr *mr, *next;

	assert(!mem->own);
	LL_FOREACH_SAFE(mem->abandoned, mr, next)
		tq_mem_deregister(mr);
	if (mem->sink)
		ibv_dereg_mr(mem->sink);
	if (mem->sink_range)
		munmap(mem->sink_range, mem->sink_range_len);
	all_close(mem);
	free(mem);
	net->mem = NULL;
}
