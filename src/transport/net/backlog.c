/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/backlog.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/copy.h"
#include "net/link.h"
#include "net/link_fail.h"

#define FREE_MAX 1024u /* entries kept for the next messages that wait */

uint32_t tq_backlog_room(const struct tq_net *net)
{
	return net->limits.max_inline > TQ_MSG_MAX ? net->limits.max_inline : TQ_MSG_MAX;
}

static struct tq_backlog *backlog_new(struct tq_net *net, struct tq_link *link, const void *msg,
				      uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *b = net->backlog_free;

	if (b) {
		net->backlog_free = b->next;
		net->nbacklog_free--;
	} else {
		b = malloc(sizeof(*b) + tq_backlog_room(net));
		if (!b)
			return NULL;
	}
	TQ_LEVEL(net->stats, waiting, 1);
	b->len = len;
	b->flags = flags;
	b->again = false;
	if (copy) {
		b->copy = *copy;
		link->backlog_bytes += len;
	} else {
		assert(len <= tq_backlog_room(net));
		b->copy.reg = NULL;
		memcpy(b->data, msg, len);
	}
	if (!link->backlog)
		DL_APPEND2(net->waiting, link, waiting_prev, waiting_next);
	return b;
}

int tq_backlog_append(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		      const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *b = backlog_new(net, link, msg, len, copy, flags);

	if (!b)
		return -ENOMEM;
	DL_APPEND(link->backlog, b);
	return 0;
}

bool tq_backlog_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy)
{
	struct tq_link *link = posted->link;
	struct tq_backlog *b =
		backlog_new(net, link, posted->bytes, posted->len, copy, posted->flags);

	if (!b) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "no memory to send a message again");
		return false;
	}
	b->again = true;
	DL_PREPEND(link->backlog, b);
	return true;
}

void tq_backlog_pop(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *b = link->backlog;

	DL_DELETE(link->backlog, b);
	if (link->backpressure == b)
		link->backpressure = NULL;
	if (b->copy.reg)
		link->backlog_bytes -= b->len;
	if (!link->backlog)
		DL_DELETE2(net->waiting, link, waiting_prev, waiting_next);
	TQ_LEVEL(net->stats, waiting, -1);
	if (net->nbacklog_free == FREE_MAX) {
		free(b);
		return;
	}
	LL_PREPEND(net->backlog_free, b);
	net->nbacklog_free++;
}

void tq_backlog_drop(struct tq_net *net, struct tq_link *link)
{
	struct tq_sg copy;

	while (link->backlog) {
		copy = link->backlog->copy;
		tq_backlog_pop(net, link);
		if (copy.reg)
			tq_copy_put(net, &copy);
	}
}

void tq_backlog_close(struct tq_net *net)
{
	struct tq_backlog *b, *next;

	assert(!net->waiting);
	LL_FOREACH_SAFE(net->backlog_free, b, next)
		free(b);
}
