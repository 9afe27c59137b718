/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"

#include <errno.h>

#include "pml.h"

struct registration {
	mca_rcache_base_registration_t super;
	struct tq_mr *mr;
};

static mca_rcache_base_module_t *rcache;

static int register_mem(void *arg, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
	int rc = tq_mr_register(tupleq_pml.ep, base, size, &((struct registration *)reg)->mr);

	(void)arg;
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

static struct tq_mr *cache_get(void *arg, void *addr, size_t len, void **cookie)
{
	const int access = MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_READ |
			   MCA_RCACHE_ACCESS_REMOTE_WRITE;
	mca_rcache_base_registration_t *reg;

	(void)arg;
	if (!rcache || rcache->rcache_register(rcache, addr, len, 0, access, &reg) != OPAL_SUCCESS)
		return NULL;
	*cookie = reg;
	return ((struct registration *)reg)->mr;
}

static void cache_put(void *arg, void *cookie)
{
	(void)arg;
	/* What tq_close() drops is returned to a cache that is gone, with its registrations. */
	if (rcache)
		rcache->rcache_deregister(rcache, cookie);
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
	return rcache ? &cache : NULL;
}

void tupleq_cache_close(void)
{
	mca_rcache_base_module_t *module = rcache;

	if (!module)
		return;
	mca_rcache_base_module_destroy(module);
	rcache = NULL;
}
