/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory for what is in front of the data of direct messages with match bits. */
#include "proto/common/prefix.h"

#include <stdlib.h>

#include "proto/common/net_ops.h"

/* Prefixes that are registered together. A choice: a registration costs about 10 us, which so
 * many share, and a slab stays until the end. */
#define SLAB 64

struct tq_prefix_slab {
	struct tq_prefix_slab *next;
	struct tq_reg *reg;
	void *cookie;
	struct tq_prefix prefixes[SLAB];
};

static bool add_slab(struct tq_core *core)
{
	struct tq_prefix_slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return false;
	slab->reg = core->ops->reg(core->net, slab->prefixes, sizeof(slab->prefixes), true,
				   &slab->cookie);
	if (!slab->reg) {
		free(slab);
		return false;
	}
	LL_PREPEND(core->prefixes.slabs, slab);
	for (int i = 0; i < SLAB; i++) {
		slab->prefixes[i].reg = slab->reg;
		tq_prefix_put(core, &slab->prefixes[i]);
	}
	TQ_LEVEL(core->stats, prefixes, SLAB);
	return true;
}

struct tq_prefix *tq_prefix_get(struct tq_core *core)
{
	struct tq_prefix *prefix;

	if (!core->prefixes.free && !add_slab(core))
		return NULL;
	prefix = core->prefixes.free;
	LL_DELETE(core->prefixes.free, prefix);
	return prefix;
}

void tq_prefix_put(struct tq_core *core, struct tq_prefix *prefix)
{
	LL_PREPEND(core->prefixes.free, prefix);
}

struct tq_prefix *tq_prefix_sink(struct tq_core *core)
{
	if (!core->prefixes.sink)
		core->prefixes.sink = tq_prefix_get(core);
	return core->prefixes.sink;
}

void tq_prefixes_destroy(struct tq_core *core)
{
	struct tq_prefix_slab *slab, *next;

	LL_FOREACH_SAFE(core->prefixes.slabs, slab, next) {
		core->ops->unreg(core->net, slab->reg, slab->cookie);
		free(slab);
		TQ_LEVEL(core->stats, prefixes, -SLAB);
	}
}
