/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a message that is several pieces, which the HCA gathers or scatters. */
#include "proto/pieces.h"

#include <stdlib.h>

#include "proto/objects.h"

bool tq_pieces_fit(const struct tq_buf *buf, uint32_t most)
{
	return buf->npieces && buf->npieces <= most;
}

struct tq_pieces *tq_pieces_reg(struct tq_core *core, const struct tq_buf *buf, uint64_t len,
				bool write, uint32_t most)
{
	struct tq_pieces *p;
	uint32_t i;

	if (!tq_pieces_fit(buf, most))
		return NULL;
	p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	p->n = 0;
	for (i = 0; len && i < buf->npieces; i++) {
		struct tq_sg *sg = &p->sg[p->n];

		sg->addr = buf->pieces[i].addr;
		sg->len = buf->pieces[i].len < len ? buf->pieces[i].len : len;
		if (!sg->len)
			continue;
		sg->reg = core->ops->reg(core->net, sg->addr, sg->len, write, &p->cookie[p->n]);
		if (!sg->reg)
			break;
		len -= sg->len;
		p->n++;
	}
	if (!len)
		return p;
	tq_pieces_unreg(core, p);
	return NULL;
}

void tq_pieces_unreg(struct tq_core *core, struct tq_pieces *p)
{
	while (p->n--)
		core->ops->unreg(core->net, p->sg[p->n].reg, p->cookie[p->n]);
	free(p);
}

int tq_pieces_list(const struct tq_pieces *p, const struct tq_sg *one, uint64_t len,
		   struct tq_sg list[TQ_MAX_PIECES])
{
	const struct tq_sg *from = p ? p->sg : one;
	int n = p ? p->n : 1, i;

	for (i = 0; len && i < n; i++) {
		list[i] = from[i];
		if (list[i].len > len)
			list[i].len = len;
		len -= list[i].len;
	}
	return i;
}
