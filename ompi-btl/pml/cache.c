/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>

#include "pml.h"

/* All that the library has of one keep a single reference in Open MPI's cache. */
struct registration {
	mca_rcache_base_registration_t super;
	struct tq_mr *mr;
	uint32_t uses; /* by the library */
	bool recent;   /* in recent[] */
};

/*
 * Registrations that were used last, by address: to find one in Open MPI's tree takes longer than
 * to post a receive. Like all here it is protected by the endpoint's lock, under which the library
 * calls; only the flags are set by others, when memory is unmapped.
 */
enum { RECENT = 16 };
static struct registration *recent[RECENT];

/* Without hooks nobody hears of memory that is unmapped: then a registration ends with its use. */
static bool keeps_recent;

static mca_rcache_base_module_t *rcache;

static int register_mem(void *arg, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
	struct registration *r = (struct registration *)reg;
	int rc = tq_mr_register(tupleq_pml.ep, base, size, &r->mr);

	(void)arg;
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

static struct registration **slot_of(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> 12;

	return &recent[(page ^ page >> 4 ^ page >> 8) % RECENT];
}

static bool is_unmapped(const struct registration *r)
{
	return __atomic_load_n(&r->super.flags, __ATOMIC_RELAXED) & MCA_RCACHE_FLAGS_INVALID;
}

/* Gives the reference back when nothing needs it. */
static void let_go(struct registration *r)
{
	if (!r->uses && !r->recent)
		rcache->rcache_deregister(rcache, &r->super);
}

static void forget(struct registration **slot)
{
	struct registration *r = *slot;

	*slot = NULL;
	r->recent = false;
	let_go(r);
}

/* Of what the user has unmapped the pages stay pinned until it is forgotten. */
static void forget_unmapped(void)
{
	for (int i = 0; i < RECENT; i++)
		if (recent[i] && is_unmapped(recent[i]))
			forget(&recent[i]);
}

static bool forget_all(void)
{
	bool any = false;

	for (int i = 0; i < RECENT; i++) {
		if (!recent[i])
			continue;
		forget(&recent[i]);
		any = true;
	}
	return any;
}

static bool covers(const struct registration *r, const unsigned char *addr, size_t len)
{
	return r->super.base <= addr && addr + len - 1 <= r->super.bound && !is_unmapped(r);
}

/* From Open MPI's cache, which makes it if there is none. */
static struct registration *look_up(void *addr, size_t len)
{
	const int access = MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_READ |
			   MCA_RCACHE_ACCESS_REMOTE_WRITE;
	mca_rcache_base_registration_t *reg;
	struct registration *r;

	while (rcache->rcache_register(rcache, addr, len, 0, access, &reg) != OPAL_SUCCESS) {
		/* It may give up what is idle: that we keep some for the next time isn't use. */
		if (!forget_all())
			return NULL;
	}
	r = (struct registration *)reg;
	if (r->uses || r->recent)
		rcache->rcache_deregister(rcache, reg);
	return r;
}

static struct tq_mr *cache_get(void *arg, void *addr, size_t len, void **cookie)
{
	struct registration **slot = slot_of(addr), *r = *slot;

	(void)arg;
	if (!rcache)
		return NULL;
	if (!r || !covers(r, addr, len)) {
		forget_unmapped();
		r = look_up(addr, len);
		if (!r)
			return NULL;
		r->uses++;
		if (keeps_recent && !r->recent) {
			if (*slot)
				forget(slot);
			r->recent = true;
			*slot = r;
		}
	} else {
		r->uses++;
	}
	*cookie = r;
	return r->mr;
}

static void cache_put(void *arg, void *cookie)
{
	struct registration *r = cookie;

	(void)arg;
	/* What tq_close() drops is returned to a cache that is gone, with its registrations. */
	if (!rcache)
		return;
	r->uses--;
	let_go(r);
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
	/* As the cache itself decides, which has set what was left to it by now. */
	keeps_recent = opal_leave_pinned > 0 || opal_leave_pinned_pipeline;
	return rcache ? &cache : NULL;
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
