/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a receive's data come to: the user's, or the library's, from which they are
 * copied.
 */
#include "proto/recv_mem.h"

#include <stdlib.h>

#include "proto/pieces.h"
#include "proto/rx_objects.h"

bool tq_recv_mem_register(struct tq_recv_req *r, uint64_t len, uint32_t pieces)
{
	struct tq_core *core = r->req.core;

	if (len && r->buf.ops) {
		r->pieces = tq_pieces_reg(core, &r->buf, len, true, pieces);
		if (!r->pieces)
			return false;
		r->sg = (struct tq_sg){.len = len, .reg = r->pieces->sg[0].reg};
		return true;
	}
	r->sg = (struct tq_sg){.addr = r->buf.addr, .len = len};
	if (len)
		r->sg.reg = core->ops->reg(core->net, r->sg.addr, len, true, &r->cookie);
	return !len || r->sg.reg;
}

bool tq_recv_mem_bounce(struct tq_recv_req *r, uint64_t len, bool held)
{
	struct tq_core *core = r->req.core;

	r->bounced = true;
	r->sg = (struct tq_sg){.addr = malloc(len ? len : 1), .len = len};
	if (!r->sg.addr)
		goto fail;
	if (!len)
		return true;
	r->sg.reg = core->ops->reg(core->net, r->sg.addr, len, true, &r->cookie);
	if (r->sg.reg)
		return true;
	free(r->sg.addr);
	/* Nothing more can be registered: the pool of copies is registered already. That may be
	 * used up by messages that are held at their receivers, and those wait for this one. */
	r->pooled = core->ops->copy_get(core->net, len, &r->sg) ||
		    (held && len <= core->limits->eager_max &&
		     core->ops->reserve_get(core->net, len, &r->sg));
	if (r->pooled)
		return true;
fail:
	r->bounced = false;
	r->sg = (struct tq_sg){0};
	return false;
}

int tq_recv_mem_post(struct tq_recv_req *r, uint64_t len)
{
	struct tq_core *core = r->req.core;
	struct tq_sg list[TQ_MAX_PIECES];
	int n = tq_pieces_list(r->pieces, &r->sg, len, list);

	return core->ops->srq_post(core->net, r->rx_tuple->srq, list, n, r);
}

void tq_recv_mem_release(struct tq_recv_req *r)
{
	struct tq_core *core = r->req.core;

	if (r->pooled) {
		core->ops->copy_put(core->net, &r->sg);
	} else if (r->pieces) {
		tq_pieces_unreg(core, r->pieces);
	} else {
		if (r->sg.reg)
			core->ops->unreg(core->net, r->sg.reg, r->cookie);
		if (r->bounced)
			free(r->sg.addr);
	}
	r->bounced = r->pooled = false;
	r->pieces = NULL;
	r->sg = (struct tq_sg){0};
}
