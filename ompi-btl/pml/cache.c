/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "series.h"

/* A registration. The library and recent[] together hold one reference in Open MPI's cache. */
struct registration {
	mca_rcache_base_registration_t super;
	struct tq_mr *mr;
	uint32_t uses; /* by the library */
	bool recent;   /* in recent[] */
};

/*
 * The registrations that were used last, by address, because a search in Open MPI's tree takes
 * longer than posting a receive. The endpoint's lock guards this array, the registrations and all
 * of Open MPI's cache.
 */
enum { RECENT = 16 }; /* few, because an invalidation looks at all of them */
static struct registration *recent[RECENT];

/* A range of memory. */
struct range {
	uintptr_t base, bound; /* first byte, last byte */
};

/*
 * Memory that the program has returned to the system since the last look-up. Open MPI's hooks
 * report a range before it is unmapped, in any thread, even within free() or within this file's own
 * calls of Open MPI. The hook only records the range. The next look-up, which holds the endpoint's
 * lock, removes the registrations in the range from the cache, before the next owner of the
 * addresses can look one up. So only one thread at a time uses Open MPI's cache; its own
 * invalidation would race with the end of a registration's use in another thread.
 *
 * The lock is held for a few instructions and never during a call.
 */
enum { FREED = 64 }; /* 1 KiB; if there are more between two look-ups, ranges are merged */
static struct {
	struct range ranges[FREED];
	_Atomic unsigned count;
	atomic_flag lock;
} freed = {.lock = ATOMIC_FLAG_INIT};

enum {
	READ = MCA_RCACHE_ACCESS_REMOTE_READ,
	READ_WRITE = READ | MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE
};

static const struct mca_pml_tupleq_cache_owner *owner;
static mca_rcache_base_module_t *rcache;
static uint64_t ended; /* registrations, so far */
static mca_rcache_base_module_invalidate_range_fn_t invalidate_registrations;

/*
 * Registers memory for reading and writing, so that one registration serves sends and receives. A
 * send may be of memory that the process can only read, like a mapped file; that is registered for
 * reading.
 */
static int register_mem(void *arg, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
	struct registration *registration = (struct registration *)reg;
	int rc;

	(void)arg;
	if (!base) /* end_invalid() */
		return OPAL_ERROR;
	rc = tq_mr_register(*owner->ep, base, size, true, &registration->mr);
	if (!rc)
		reg->access_flags = READ_WRITE;
	else if (rc != -ENOMEM && reg->access_flags == READ)
		rc = tq_mr_register(*owner->ep, base, size, false, &registration->mr);
	registration->uses = 0;
	registration->recent = false;
	/* With this error the cache evicts an idle registration and tries again. */
	if (rc == -ENOMEM)
		return OPAL_ERR_OUT_OF_RESOURCE;
	return rc ? OPAL_ERROR : OPAL_SUCCESS;
}

static int deregister_mem(void *arg, mca_rcache_base_registration_t *reg)
{
	(void)arg;
	ended++;
	tq_mr_deregister(((struct registration *)reg)->mr);
	return OPAL_SUCCESS;
}

/* ---- memory that is returned to the system ---- */

/* Marks functions that Open MPI's memory hooks call. They aren't instrumented, because a thread's
 * stack is unmapped after ThreadSanitizer has ended the thread. */
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

/* Returns how many bytes are between two ranges, or 0 if they touch or overlap. */
FROM_HOOK static uintptr_t gap(const struct range *one, const struct range *other)
{
	if (one->bound < other->base)
		return other->base - one->bound - 1;
	return other->bound < one->base ? one->base - other->bound - 1 : 0;
}

/* Adds a range. If there is no room, the nearest range is extended; the memory in between will then
 * be registered again. */
FROM_HOOK static void record_freed(struct range range)
{
	unsigned count = atomic_load_explicit(&freed.count, memory_order_relaxed), best = 0;
	struct range *ranges = freed.ranges;

	for (unsigned i = 1; i < count; i++)
		if (gap(&ranges[i], &range) < gap(&ranges[best], &range))
			best = i;
	if (count == 0 || (count < FREED && gap(&ranges[best], &range) > 0)) {
		ranges[count] = range;
		atomic_store_explicit(&freed.count, count + 1, memory_order_release);
		return;
	}
	if (range.base < ranges[best].base)
		ranges[best].base = range.base;
	if (range.bound > ranges[best].bound)
		ranges[best].bound = range.bound;
}

/* Removes a range from the list of freed ones. Returns false if there is none. */
FROM_HOOK static bool pop_freed(struct range *range)
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
 * Records a range that Open MPI's memory hooks report; the size is never 0. Returns OPAL_SUCCESS
 * even if a registration in the range is in use, because Open MPI ends the job for an error. That
 * may be correct: a registration may cover more than the buffers of pending operations, and
 * for an mremap() the hooks also report the pages that stay.
 */
FROM_HOOK static int invalidate_range(mca_rcache_base_module_t *module, void *base, size_t size)
{
	struct range range = {(uintptr_t)base, (uintptr_t)base + size - 1};

	(void)module;
	/* The system will refuse to unmap a range that wraps. */
	if (range.bound < range.base)
		range.bound = UINTPTR_MAX;
	lock_freed();
	record_freed(range);
	unlock_freed();
	if (owner->invalidated)
		owner->invalidated(range.base, range.bound);
	return OPAL_SUCCESS;
}

/* Empties the list of freed ranges. Returns true if one of them contains the page. Called before
 * there are registrations. */
static bool take_freed(const void *page)
{
	struct range range;
	bool any = false;

	while (pop_freed(&range))
		any |= range.base <= (uintptr_t)page && (uintptr_t)page <= range.bound;
	return any;
}

/* Arguments of mmap() for pages of memory. */
enum { PROT = PROT_READ | PROT_WRITE, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS };

/*
 * Returns two pages to the system by each of the C library's calls. Returns the name of a call that
 * Open MPI's hooks don't report, or NULL. The hooks intercept the functions of the C library, but
 * an allocator may replace these, as tcmalloc does.
 */
static const char *unreported_call(char *map)
{
	const size_t page = (size_t)opal_getpagesize();
	const char *call = NULL;

	take_freed(map);
	if (madvise(map, page, MADV_DONTNEED) || !take_freed(map))
		call = "madvise";
	if (mremap(map, 2 * page, page, 0) != map || !take_freed(map))
		call = "mremap";
	if (mmap(map, page, PROT, FLAGS | MAP_FIXED, -1, 0) != map || !take_freed(map))
		call = "mmap";
	if (munmap(map, page) || !take_freed(map))
		call = "munmap";
	return call;
}

/* ---- recent registrations ---- */

static struct registration **slot_of(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> 12;

	return &recent[(page ^ page >> 4 ^ page >> 8) % RECENT];
}

static void release_registration(struct registration *registration)
{
	rcache->rcache_deregister(rcache, &registration->super);
}

static void clear_slot(struct registration **slot)
{
	struct registration *registration = *slot;

	*slot = NULL;
	if (!registration)
		return;
	registration->recent = false;
	if (!registration->uses)
		release_registration(registration);
}

/* Removes the recent registrations in a range. Returns true if there were any. */
static bool clear_recent(struct range range)
{
	bool any = false;

	for (int i = 0; i < RECENT; i++) {
		const struct registration *registration = recent[i];

		if (!registration || (uintptr_t)registration->super.base > range.bound ||
		    (uintptr_t)registration->super.bound < range.base)
			continue;
		clear_slot(&recent[i]);
		any = true;
	}
	return any;
}

static bool clear_all_recent(void)
{
	return clear_recent((struct range){0, UINTPTR_MAX});
}

static void put_recent(struct registration *registration, struct registration **slot)
{
	if (registration->recent)
		return;
	clear_slot(slot);
	*slot = registration;
	registration->recent = true;
}

static struct registration *find_recent(struct registration *const *slot, const unsigned char *addr,
					size_t len, bool write)
{
	struct registration *registration = *slot;

	if (registration && registration->super.base <= addr &&
	    addr + len - 1 <= registration->super.bound &&
	    (!write || registration->super.access_flags == READ_WRITE))
		return registration;
	return NULL;
}

/* ---- Open MPI's cache ---- */

/*
 * Removes the registrations in a range from the cache. A registration in use stays valid until its
 * last use ends, but no look-up finds it.
 *
 * Open MPI's function refuses a range that begins where a registration in use begins, and then
 * doesn't handle the rest of the range. That function also counts registrations that are adjacent
 * to the range. Neither happens if the range lacks its first byte and its last one, which is
 * harmless because registrations consist of whole pages.
 */
static void invalidate(struct range range)
{
	const uintptr_t page = (uintptr_t)opal_getpagesize();
	uintptr_t base = range.base & ~(page - 1), bound = range.bound | (page - 1);

	clear_recent((struct range){base, bound});
	invalidate_registrations(rcache, (void *)(base + 1), bound - base - 1);
}

/* Invalidates the memory that has been returned to the system since the last call. Returns true if
 * there was any. */
static bool invalidate_freed(void)
{
	struct range range;

	if (OPAL_LIKELY(!atomic_load_explicit(&freed.count, memory_order_acquire)))
		return false;
	while (pop_freed(&range))
		invalidate(range);
	return true;
}

/* Returns a registration from Open MPI's cache, which creates one if it has none, or NULL. */
static struct registration *look_up(void *addr, size_t len, bool write)
{
	mca_rcache_base_registration_t *reg;
	struct registration *registration;
	int rc;

	/* recent[] holds references, so the cache can't evict those registrations: if it has no
	 * room, they are released, and the look-up is repeated. */
	do
		rc = rcache->rcache_register(rcache, addr, len, 0, write ? READ_WRITE : READ, &reg);
	while (rc == OPAL_ERR_OUT_OF_RESOURCE && clear_all_recent());
	if (rc != OPAL_SUCCESS)
		return NULL;
	registration = (struct registration *)reg;
	if (registration->uses || registration->recent)
		release_registration(registration);
	return registration;
}

static struct tq_mr *cache_get(void *arg, void *addr, size_t len, bool write, void **cookie)
{
	struct registration **slot = slot_of(addr), *registration = NULL;

	(void)arg;
	if (!rcache)
		return NULL;
	/* After an invalidation the look-up must go to Open MPI's cache, which deregisters the idle
	 * registrations then. */
	if (!invalidate_freed())
		registration = find_recent(slot, addr, len, write);
	if (!registration) {
		registration = look_up(addr, len, write);
		if (!registration)
			return NULL;
		put_recent(registration, slot);
	}
	registration->uses++;
	*cookie = registration;
	return registration->mr;
}

static void cache_put(void *arg, void *cookie)
{
	struct registration *registration = cookie;

	(void)arg;
	/* tq_close() ends operations after the cache, with its registrations, has been closed. */
	if (!rcache)
		return;
	if (--registration->uses || registration->recent)
		return;
	if (registration->super.flags & MCA_RCACHE_FLAGS_INVALID)
		tq_mr_count_outdated(registration->mr);
	release_registration(registration);
}

/* Ends the idle registrations that were invalidated. Open MPI's cache does that at the start of
 * each look-up, and nowhere else; this one fails, because register_mem() refuses its address. */
static void end_invalid(void)
{
	mca_rcache_base_registration_t *reg;

	rcache->rcache_register(rcache, NULL, 1, MCA_RCACHE_FLAGS_CACHE_BYPASS, READ, &reg);
}

/* Ends registrations that nothing uses: those of memory that is gone, else the one that was used
 * least recently, else one in recent[]. Returns false if there is none. */
static bool cache_make_room(void *arg)
{
	uint64_t before = ended;

	(void)arg;
	if (!rcache)
		return false;
	invalidate_freed();
	end_invalid();
	if (ended == before && !rcache->rcache_evict(rcache) && clear_all_recent())
		rcache->rcache_evict(rcache);
	return ended != before;
}

/* ---- opening and closing ---- */

/*
 * Tests the hooks. Returns true if they report all memory that is returned to the system.
 * Otherwise logs the reason: a look-up could find a registration of memory that is gone, so there
 * is no cache.
 */
static bool test_hooks(void)
{
	char text[160];
	const char *call;
	void *map;

	/* Open MPI has set these to its defaults by now unless the user set them. */
	if (opal_leave_pinned <= 0 && !opal_leave_pinned_pipeline) {
		owner->log(NULL, TQ_LOG_INFO,
			   "opal_leave_pinned is off, so buffers are registered for each message.");
		return false;
	}
	map = mmap(NULL, 2 * (size_t)opal_getpagesize(), PROT, FLAGS, -1, 0);
	if (map == MAP_FAILED) {
		snprintf(text, sizeof(text),
			 "The memory hooks can't be tested: mmap() failed (%s). So buffers are "
			 "registered for each message.",
			 strerror(errno));
		owner->log(NULL, TQ_LOG_INFO, text);
		return false;
	}
	call = unreported_call(map);
	if (!call)
		return true;
	snprintf(text, sizeof(text),
		 "Open MPI's memory hooks don't report %s(), so buffers are registered for each "
		 "message.",
		 call);
	owner->log(NULL, TQ_LOG_INFO, text);
	return false;
}

const struct tq_mr_cache *
mca_pml_tupleq_cache_open(const struct mca_pml_tupleq_cache_owner *component)
{
	static const struct tq_mr_cache cache = {
		.get = cache_get,
		.put = cache_put,
		.make_room = cache_make_room,
	};
	mca_rcache_base_resources_t resources = {
		.cache_name = "tupleq",
		.sizeof_reg = sizeof(struct registration),
		.register_mem = register_mem,
		.deregister_mem = deregister_mem,
	};

	owner = component;
	rcache = mca_rcache_base_module_create("grdma", NULL, &resources);
	if (!rcache)
		return NULL;
	invalidate_registrations = rcache->rcache_invalidate_range;
	rcache->rcache_invalidate_range = invalidate_range;
	if (!test_hooks()) {
		mca_pml_tupleq_cache_close();
		return NULL;
	}
	return &cache;
}

void mca_pml_tupleq_cache_close(void)
{
	mca_rcache_base_module_t *module = rcache;

	if (!module)
		return;
	clear_all_recent();
	mca_rcache_base_module_destroy(module);
	rcache = NULL;
}
