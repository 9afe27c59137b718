/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that a receive's data come to: the user's, or the library's, from which they are
 * copied.
 */
#include "proto/receiver/recv_mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/pieces.h"
#include "proto/common/prefix.h"
#include "proto/common/rx_objects.h"

uint32_t tq_recv_mem_pieces(const struct tq_recv_req *recv)
{
	/* An entry's receive begins with a piece for the prefix. */
	return recv->req.core->limits->max_srq_sge - (recv->req.kind == TQ_REQ_ENTRY);
}

bool tq_recv_mem_register(struct tq_recv_req *recv, uint64_t len, uint32_t pieces)
{
	struct tq_core *core = recv->req.core;

	if (len && recv->buf.ops) {
		recv->pieces = tq_pieces_reg(core, &recv->buf, len, true, pieces);
		if (!recv->pieces)
			return false;
		recv->sg = (struct tq_sg){.len = len, .reg = recv->pieces->sg[0].reg};
		return true;
	}
	recv->sg = (struct tq_sg){.addr = recv->buf.addr, .len = len};
	if (len)
		recv->sg.reg = core->ops->reg(core->net, recv->sg.addr, len, true, &recv->cookie);
	return !len || recv->sg.reg;
}

bool tq_recv_mem_bounce(struct tq_recv_req *recv, uint64_t len, bool held)
{
	struct tq_core *core = recv->req.core;

	recv->bounced = true;
	recv->sg = (struct tq_sg){.addr = malloc(len ? len : 1), .len = len};
	if (!recv->sg.addr)
		goto fail;
	if (!len)
		return true;
	recv->sg.reg = core->ops->reg(core->net, recv->sg.addr, len, true, &recv->cookie);
	if (recv->sg.reg)
		return true;
	free(recv->sg.addr);
	/* Nothing more can be registered; the pool of copies is registered already. Messages
	 * that are held at their receivers may have used that up, and wait for this receive. */
	recv->pooled = core->ops->copy_get(core->net, len, &recv->sg) ||
		       (held && len <= core->limits->control_data_max &&
			core->ops->reserve_get(core->net, len, &recv->sg));
	if (recv->pooled)
		return true;
fail:
	recv->bounced = false;
	recv->sg = (struct tq_sg){0};
	return false;
}

/* Puts the memory for what is in front of the data before the list. The bits and the header of held
 * messages are known, and nobody reads them again. */
static int add_prefix(struct tq_recv_req *recv, struct tq_sg list[TQ_MAX_PIECES], int n)
{
	struct tq_prefix *prefix = recv->state == TQ_RECV_REQ_HELD
					   ? tq_prefix_sink(recv->req.core)
					   : ((struct tq_entry *)recv)->prefix;

	assert(n < TQ_MAX_PIECES);
	memmove(list + 1, list, (size_t)n * sizeof(*list));
	list[0] = tq_prefix_sg(recv->ctx, prefix);
	return n + 1;
}

int tq_recv_mem_post(struct tq_recv_req *recv, uint64_t len)
{
	struct tq_core *core = recv->req.core;
	struct tq_sg list[TQ_MAX_PIECES];
	int n = tq_pieces_list(recv->pieces, &recv->sg, len, list);

	if (recv->req.kind == TQ_REQ_ENTRY && !recv->pieces_asked)
		n = add_prefix(recv, list, n);
	return core->ops->srq_post(core->net, recv->rx_tuple->srq, list, n, recv);
}

void tq_recv_mem_give_back(struct tq_recv_req *recv)
{
	struct tq_core *core = recv->req.core;

	if (recv->pooled) {
		core->ops->copy_put(core->net, &recv->sg);
	} else if (recv->pieces) {
		tq_pieces_unreg(core, recv->pieces);
	} else {
		if (recv->sg.reg)
			core->ops->unreg(core->net, recv->sg.reg, recv->cookie);
		if (recv->bounced)
			free(recv->sg.addr);
	}
	recv->bounced = recv->pooled = false;
	recv->pieces = NULL;
	recv->sg = (struct tq_sg){0};
}
