/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message that is several pieces, which the HCA gathers or scatters. */
#include "proto/common/buf.h"

#include <stdlib.h>

#include "proto/common/net_ops.h"
#include "proto/common/objects.h"

bool tq_pieces_fit(const struct tq_buf *buf, uint32_t most)
{
	return buf->npieces && buf->npieces <= most;
}

struct tq_pieces *tq_pieces_reg(struct tq_core *core, const struct tq_buf *buf, uint64_t len,
				bool write, uint32_t most)
{
	struct tq_pieces *pieces;
	uint32_t i;

	if (!tq_pieces_fit(buf, most))
		return NULL;
	pieces = malloc(sizeof(*pieces));
	if (!pieces)
		return NULL;
	pieces->n = 0;
	for (i = 0; len && i < buf->npieces; i++) {
		struct tq_sg *sg = &pieces->sg[pieces->n];

		sg->addr = buf->pieces[i].addr;
		sg->len = buf->pieces[i].len < len ? buf->pieces[i].len : len;
		if (!sg->len)
			continue;
		sg->reg = core->ops->reg(core->net, sg->addr, sg->len, write,
					 &pieces->cookie[pieces->n]);
		if (!sg->reg)
			break;
		len -= sg->len;
		pieces->n++;
	}
	if (!len)
		return pieces;
	tq_pieces_unreg(core, pieces);
	return NULL;
}

void tq_pieces_unreg(struct tq_core *core, struct tq_pieces *pieces)
{
	while (pieces->n--)
		core->ops->unreg(core->net, pieces->sg[pieces->n].reg, pieces->cookie[pieces->n]);
	free(pieces);
}

int tq_pieces_list(const struct tq_pieces *pieces, const struct tq_sg *one, uint64_t len,
		   struct tq_sg list[TQ_MAX_PIECES])
{
	const struct tq_sg *from = pieces ? pieces->sg : one;
	int n = pieces ? pieces->n : 1, i;

	for (i = 0; len && i < n; i++) {
		list[i] = from[i];
		if (list[i].len > len)
			list[i].len = len;
		len -= list[i].len;
	}
	return i;
}

/* ---- prefixes ---- */

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
