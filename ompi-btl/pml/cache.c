/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "gpu.h"
#include "pml.h"

/* Whatever the library and recent[] have of one is a single reference in Open MPI's cache. */
struct registration {
	mca_rcache_base_registration_t super;
	struct tq_mr *mr;
	uint32_t uses; /* by the library */
	bool recent;   /* in recent[] */
};

/*
 * Registrations that were used last, by address: to find one in Open MPI's tree takes longer than
 * to post a receive. As they are referenced Open MPI thinks that they are in use, so when memory is
 * unmapped they are let go of before it looks.
 *
 * The lock protects them, `uses` and `recent`, against a thread that unmaps memory: anywhere, in
 * the midst of this file's calls of Open MPI too, so it is never held over one.
 */
enum { RECENT = 16 };
static struct registration *recent[RECENT];
static atomic_flag recent_lock = ATOMIC_FLAG_INIT;

/* Without hooks nobody hears of memory that is unmapped: then a registration ends with its use. */
static bool keeps_recent;

enum {
	READ = MCA_RCACHE_ACCESS_REMOTE_READ,
	READ_WRITE = READ | MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE
};

static mca_rcache_base_module_t *rcache;
static mca_rcache_base_module_invalidate_range_fn_t invalidate_rest;

/*
 * What is sent may be memory that the process itself may only read, as a mapped file. Most isn't,
 * and is received into as well: one registration does for both.
 */
static int register_mem(void *arg, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
	struct registration *r = (struct registration *)reg;
	int rc = tq_mr_register(tupleq_pml.ep, base, size, true, &r->mr);

	(void)arg;
	if (!rc)
		reg->access_flags = READ_WRITE;
	else if (rc != -ENOMEM && reg->access_flags == READ)
		rc = tq_mr_register(tupleq_pml.ep, base, size, false, &r->mr);
	r->uses = 0;
	r->recent = false;
	/* Out of resource: the cache gives up an idle registration and tries again. */
	if (rc == -ENOMEM)
		return OPAL_ERR_OUT_OF_RESOURCE;
	return rc ? OPAL_ERROR : OPAL_SUCCESS;
}

static int deregister_mem(void *arg, mca_rcache_base_registration_t *reg)
{
	(void)arg;
	tq_mr_deregister(((struct registration *)reg)->mr);
	return OPAL_SUCCESS;
}

/* On the way from Open MPI's memory hooks. A thread's stack is given back after ThreadSanitizer has
 * let go of the thread, and nothing that it looks at may run then. */
#define FROM_HOOK __attribute__((no_sanitize("thread")))

FROM_HOOK static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&recent_lock, memory_order_acquire))
		sched_yield();
}

FROM_HOOK static void unlock(void)
{
	atomic_flag_clear_explicit(&recent_lock, memory_order_release);
}

static struct registration **slot_of(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> 12;

	return &recent[(page ^ page >> 4 ^ page >> 8) % RECENT];
}

FROM_HOOK static void give_back(struct registration *r)
{
	if (r)
		rcache->rcache_deregister(rcache, &r->super);
}

/* Called with the lock. Returns what is to be given back without it, or NULL. */
FROM_HOOK static struct registration *take_out(struct registration **slot)
{
	struct registration *r = *slot;

	if (!r)
		return NULL;
	*slot = NULL;
	r->recent = false;
	return r->uses ? NULL : r;
}

FROM_HOOK static bool overlaps(const struct registration *r, uintptr_t base, uintptr_t bound)
{
	return (uintptr_t)r->super.base <= bound && base <= (uintptr_t)r->super.bound;
}

/* Forgets those of a range of addresses. Returns whether there were any. */
FROM_HOOK static bool forget(uintptr_t base, uintptr_t bound)
{
	struct registration *idle;
	bool any = false;

	for (int i = 0; i < RECENT; i++) {
		idle = NULL;
		lock();
		if (recent[i] && overlaps(recent[i], base, bound)) {
			idle = take_out(&recent[i]);
			any = true;
		}
		unlock();
		give_back(idle);
	}
	return any;
}

static bool forget_all(void)
{
	return forget(0, UINTPTR_MAX);
}

/* Memory is being unmapped. */
FROM_HOOK static int invalidate_range(mca_rcache_base_module_t *module, void *base, size_t size)
{
	forget((uintptr_t)base, (uintptr_t)base + size - 1);
	tupleq_gpu_forget((uintptr_t)base, (uintptr_t)base + size - 1);
	return invalidate_rest(module, base, size);
}

static struct tq_mr *get_recent(struct registration *const *slot, const unsigned char *addr,
				size_t len, bool write, void **cookie)
{
	struct registration *r;

	lock();
	r = *slot;
	if (r && r->super.base <= addr && addr + len - 1 <= r->super.bound &&
	    (!write || r->super.access_flags == READ_WRITE))
		r->uses++;
	else
		r = NULL;
	unlock();
	*cookie = r;
	return r ? r->mr : NULL;
}

/* From Open MPI's cache, which makes it if there is none. */
static struct registration *look_up(void *addr, size_t len, bool write)
{
	mca_rcache_base_registration_t *reg;
	int rc;

	/* It gives up what is idle if it can't make another one; what we keep isn't idle to it. */
	do
		rc = rcache->rcache_register(rcache, addr, len, 0, write ? READ_WRITE : READ, &reg);
	while (rc == OPAL_ERR_OUT_OF_RESOURCE && forget_all());
	return rc == OPAL_SUCCESS ? (struct registration *)reg : NULL;
}

static struct tq_mr *cache_get(void *arg, void *addr, size_t len, bool write, void **cookie)
{
	struct registration **slot = slot_of(addr), *r, *idle = NULL;
	struct tq_mr *mr = get_recent(slot, addr, len, write, cookie);
	bool had;

	(void)arg;
	if (mr || !rcache)
		return mr;
	r = look_up(addr, len, write);
	if (!r)
		return NULL;
	lock();
	had = r->uses || r->recent;
	r->uses++;
	if (keeps_recent && !r->recent) {
		idle = take_out(slot);
		*slot = r;
		r->recent = true;
	}
	unlock();
	if (had)
		give_back(r);
	give_back(idle);
	*cookie = r;
	return r->mr;
}

static void cache_put(void *arg, void *cookie)
{
	struct registration *r = cookie;
	bool idle;

	(void)arg;
	/* What tq_close() drops is returned to a cache that is gone, with its registrations. */
	if (!rcache)
		return;
	lock();
	idle = !--r->uses && !r->recent;
	unlock();
	if (idle)
		give_back(r);
}

const struct tq_mr_cache *tupleq_cache_open(void)
{
	static const struct tq_mr_cache cache = {.get = cache_get, .put = cache_put};
	mca_rcache_base_resources_t resources = {
		.cache_name = "tupleq",
		.sizeof_reg = sizeof(struct registration),
		.register_mem = register_mem,
		.deregister_mem = deregister_mem,
	};

	rcache = mca_rcache_base_module_create("grdma", NULL, &resources);
	if (!rcache)
		return NULL;
	/* As the cache itself decides, which has set by now what was left to it. */
	keeps_recent = opal_leave_pinned > 0 || opal_leave_pinned_pipeline;
	if (keeps_recent)
		tupleq_gpu_remember();
	invalidate_rest = rcache->rcache_invalidate_range;
	rcache->rcache_invalidate_range = invalidate_range;
	return &cache;
}

void tupleq_cache_close(void)
{
	mca_rcache_base_module_t *module = rcache;

	if (!module)
		return;
	forget_all();
	mca_rcache_base_module_destroy(module);
	rcache = NULL;
}
