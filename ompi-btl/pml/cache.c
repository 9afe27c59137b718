/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "gpu.h"
#include "log.h"
#include "pml.h"

/* The library and recent[] together hold a single reference in Open MPI's cache. */
struct registration {
	mca_rcache_base_registration_t super;
	struct tq_mr *mr;
	uint32_t uses; /* by the library */
	bool recent;   /* in recent[] */
};

/*
 * Registrations that were used last, by address: a search in Open MPI's tree takes longer than
 * posting a receive.
 *
 * The endpoint's lock protects them, `uses`, `recent` and all of Open MPI's cache.
 */
enum { RECENT = 16 };
static struct registration *recent[RECENT];

/*
 * Memory that was given back to the system since the last look-up. Open MPI's hooks report it in
 * any thread, within free() or within this file's own calls of Open MPI, and before the memory
 * goes. The hook only notes the range. The next look-up, which has the endpoint's lock, takes the
 * registrations in the range out of the cache, before the new owner of the addresses can get one.
 * So Open MPI's cache is used by one thread at a time: its own invalidation would meet the end of a
 * registration's use in another thread.
 *
 * The lock is held for a few instructions, never over a call.
 */
struct range {
	uintptr_t base, bound; /* the first byte and the last one */
};
enum { FREED = 64 };
static struct {
	struct range ranges[FREED];
	_Atomic unsigned count;
	atomic_flag lock;
} freed = {.lock = ATOMIC_FLAG_INIT};

enum {
	READ = MCA_RCACHE_ACCESS_REMOTE_READ,
	READ_WRITE = READ | MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE
};

static mca_rcache_base_module_t *rcache;
static mca_rcache_base_module_invalidate_range_fn_t invalidate_registrations;

/*
 * What is sent may be memory that the process itself may only read, as a mapped file. Most isn't,
 * and is received into as well: one registration does for both.
 */
static int register_mem(void *arg, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
	struct registration *r = (struct registration *)reg;
	int rc = tq_mr_register(mca_pml_tupleq.ep, base, size, true, &r->mr);

	(void)arg;
	if (!rc)
		reg->access_flags = READ_WRITE;
	else if (rc != -ENOMEM && reg->access_flags == READ)
		rc = tq_mr_register(mca_pml_tupleq.ep, base, size, false, &r->mr);
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

/* ---- memory that is given back ---- */

/* Runs within Open MPI's memory hooks. A thread's stack is given back after ThreadSanitizer has let
 * go of the thread, and nothing that ThreadSanitizer looks at may run then. */
#define FROM_HOOK __attribute__((no_sanitize("thread")))

FROM_HOOK static void lock_freed(void)
{
	while (atomic_flag_test_and_set_explicit(&freed.lock, memory_order_acquire))
		sched_yield();
}

FROM_HOOK static void unlock_freed(void)
{
	atomic_flag_clear_explicit(&freed.lock, memory_order_release);
}

/* Returns how many bytes are between two ranges; 0: they touch or overlap. */
FROM_HOOK static uintptr_t gap(const struct range *a, const struct range *b)
{
	if (a->bound < b->base)
		return b->base - a->bound - 1;
	return b->bound < a->base ? a->base - b->bound - 1 : 0;
}

/* Where there is no room for one more range, the nearest one grows, and what lies between will be
 * registered again. */
FROM_HOOK static void note_freed(struct range range)
{
	unsigned count = atomic_load_explicit(&freed.count, memory_order_relaxed), best = 0;
	struct range *r = freed.ranges;

	for (unsigned i = 1; i < count; i++)
		if (gap(&r[i], &range) < gap(&r[best], &range))
			best = i;
	if (count == 0 || (count < FREED && gap(&r[best], &range) > 0)) {
		r[count] = range;
		atomic_store_explicit(&freed.count, count + 1, memory_order_release);
		return;
	}
	if (range.base < r[best].base)
		r[best].base = range.base;
	if (range.bound > r[best].bound)
		r[best].bound = range.bound;
}

FROM_HOOK static bool next_freed(struct range *range)
{
	unsigned count;

	lock_freed();
	count = atomic_load_explicit(&freed.count, memory_order_relaxed);
	if (count > 0) {
		*range = freed.ranges[count - 1];
		atomic_store_explicit(&freed.count, count - 1, memory_order_relaxed);
	}
	unlock_freed();
	return count > 0;
}

/*
 * Called by Open MPI's memory hooks, never with a size of 0. Always OPAL_SUCCESS, as Open MPI ends
 * the job for anything else: a program may give back whatever no pending operation uses, which is
 * more than what no registration covers, and of an mremap() the hooks report the pages that stay,
 * too.
 */
FROM_HOOK static int invalidate_range(mca_rcache_base_module_t *module, void *base, size_t size)
{
	struct range range = {(uintptr_t)base, (uintptr_t)base + size - 1};

	(void)module;
	/* The system refuses to unmap such a range, after the hook. */
	if (range.bound < range.base)
		range.bound = UINTPTR_MAX;
	lock_freed();
	note_freed(range);
	unlock_freed();
	mca_pml_tupleq_gpu_forget(range.base, range.bound);
	return OPAL_SUCCESS;
}

/* Returns whether the hooks have reported a page. There are no registrations yet. */
static bool is_freed(const void *page)
{
	struct range range;
	bool any = false;

	while (next_freed(&range))
		any |= range.base <= (uintptr_t)page && (uintptr_t)page <= range.bound;
	return any;
}

/*
 * Gives pages back by each of the C library's calls. Returns one that Open MPI's hooks don't
 * report, or NULL. They see calls of the C library's functions, but an allocator may have functions
 * of its own in front of these, as tcmalloc does.
 */
static const char *unreported_call(void)
{
	const size_t page = (size_t)opal_getpagesize();
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	const char *call = NULL;
	char *map = mmap(NULL, 2 * page, prot, flags, -1, 0);

	if (map == MAP_FAILED)
		return "mmap";
	is_freed(map);
	if (madvise(map, page, MADV_DONTNEED) || !is_freed(map))
		call = "madvise";
	if (mremap(map, 2 * page, page, 0) != map || !is_freed(map))
		call = "mremap";
	if (mmap(map, page, prot, flags | MAP_FIXED, -1, 0) != map || !is_freed(map))
		call = "mmap";
	if (munmap(map, page) || !is_freed(map))
		call = "munmap";
	return call;
}

/* ---- registrations at hand ---- */

static struct registration **slot_of(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> 12;

	return &recent[(page ^ page >> 4 ^ page >> 8) % RECENT];
}

static void give_back(struct registration *r)
{
	rcache->rcache_deregister(rcache, &r->super);
}

static void empty(struct registration **slot)
{
	struct registration *r = *slot;

	*slot = NULL;
	if (!r)
		return;
	r->recent = false;
	if (!r->uses)
		give_back(r);
}

/* Forgets the registrations at hand in a range. Returns whether there were any. */
static bool forget(struct range range)
{
	bool any = false;

	for (int i = 0; i < RECENT; i++) {
		const struct registration *r = recent[i];

		if (!r || (uintptr_t)r->super.base > range.bound ||
		    (uintptr_t)r->super.bound < range.base)
			continue;
		empty(&recent[i]);
		any = true;
	}
	return any;
}

static bool forget_all(void)
{
	return forget((struct range){0, UINTPTR_MAX});
}

static void keep(struct registration *r, struct registration **slot)
{
	if (r->recent)
		return;
	empty(slot);
	*slot = r;
	r->recent = true;
}

static struct registration *find_recent(struct registration *const *slot, const unsigned char *addr,
					size_t len, bool write)
{
	struct registration *r = *slot;

	if (r && r->super.base <= addr && addr + len - 1 <= r->super.bound &&
	    (!write || r->super.access_flags == READ_WRITE))
		return r;
	return NULL;
}

/* ---- Open MPI's cache ---- */

/*
 * Takes what is registered of a range out of the cache. A registration in use stays as it is until
 * its last use ends, but no look-up finds it any more.
 *
 * Open MPI's function refuses a range that begins where a registration in use does, and leaves the
 * rest of the range alone then; and it takes the neighbours of a range for a part of it. As
 * registrations consist of whole pages, the range may lack its first byte and its last one, by
 * which neither happens.
 */
static void invalidate(struct range range)
{
	const uintptr_t page = (uintptr_t)opal_getpagesize();
	uintptr_t base = range.base & ~(page - 1), bound = range.bound | (page - 1);

	forget((struct range){base, bound});
	invalidate_registrations(rcache, (void *)(base + 1), bound - base - 1);
}

/* Returns whether any memory was given back since the last call. */
static bool invalidate_freed(void)
{
	struct range range;

	if (OPAL_LIKELY(!atomic_load_explicit(&freed.count, memory_order_acquire)))
		return false;
	while (next_freed(&range))
		invalidate(range);
	return true;
}

/* Returns a registration of Open MPI's cache, which makes one if it has none, or NULL. */
static struct registration *look_up(void *addr, size_t len, bool write)
{
	mca_rcache_base_registration_t *reg;
	struct registration *r;
	int rc;

	/* If the cache can't make another registration, it gives up idle ones. To the cache those
	 * at hand aren't idle. */
	do
		rc = rcache->rcache_register(rcache, addr, len, 0, write ? READ_WRITE : READ, &reg);
	while (rc == OPAL_ERR_OUT_OF_RESOURCE && forget_all());
	if (rc != OPAL_SUCCESS)
		return NULL;
	r = (struct registration *)reg;
	if (r->uses || r->recent)
		give_back(r);
	return r;
}

static struct tq_mr *cache_get(void *arg, void *addr, size_t len, bool write, void **cookie)
{
	struct registration **slot = slot_of(addr), *r = NULL;

	(void)arg;
	if (!rcache)
		return NULL;
	/* Open MPI's cache deregisters in its next look-up what was idle: after an invalidation
	 * that is this one. */
	if (!invalidate_freed())
		r = find_recent(slot, addr, len, write);
	if (!r) {
		r = look_up(addr, len, write);
		if (!r)
			return NULL;
		keep(r, slot);
	}
	r->uses++;
	*cookie = r;
	return r->mr;
}

static void cache_put(void *arg, void *cookie)
{
	struct registration *r = cookie;

	(void)arg;
	/* tq_close() drops operations when the cache is gone, with its registrations. */
	if (!rcache)
		return;
	if (--r->uses || r->recent)
		return;
	if (r->super.flags & MCA_RCACHE_FLAGS_INVALID)
		tq_mr_count_outdated(r->mr);
	give_back(r);
}

/* ---- */

/*
 * Returns whether the hooks report all memory that is given back. Otherwise no registration may be
 * found again, not even while it is in use, so there is no cache.
 */
static bool hears_all(void)
{
	char text[128];
	const char *call;

	/* By now Open MPI has decided what was left to it. */
	if (opal_leave_pinned <= 0 && !opal_leave_pinned_pipeline)
		return false;
	call = unreported_call();
	if (!call)
		return true;
	snprintf(text, sizeof(text),
		 "Open MPI's memory hooks don't report %s(), so buffers are registered for each "
		 "message.",
		 call);
	mca_pml_tupleq_log(NULL, TQ_LOG_INFO, text);
	return false;
}

const struct tq_mr_cache *mca_pml_tupleq_cache_open(void)
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
	invalidate_registrations = rcache->rcache_invalidate_range;
	rcache->rcache_invalidate_range = invalidate_range;
	if (!hears_all()) {
		mca_pml_tupleq_cache_close();
		return NULL;
	}
	mca_pml_tupleq_gpu_remember();
	return &cache;
}

void mca_pml_tupleq_cache_close(void)
{
	mca_rcache_base_module_t *module = rcache;

	if (!module)
		return;
	forget_all();
	mca_rcache_base_module_destroy(module);
	rcache = NULL;
}
