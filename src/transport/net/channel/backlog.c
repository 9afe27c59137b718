/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/channel/backlog.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/copy.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"

#define FREE_MAX 1024u /* entries kept for the next messages that wait */

uint32_t tq_backlog_room(const struct tq_net *net)
{
	return net->limits.max_inline > TQ_MSG_MAX ? net->limits.max_inline : TQ_MSG_MAX;
}

static struct tq_backlog *backlog_new(struct tq_net *net, struct tq_link *link, const void *msg,
				      uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *entry = net->backlog_free;

	if (entry) {
		net->backlog_free = entry->next;
		net->nbacklog_free--;
	} else {
		entry = malloc(sizeof(*entry) + tq_backlog_room(net));
		if (!entry)
			return NULL;
	}
	TQ_LEVEL(net->stats, waiting, 1);
	entry->len = len;
	entry->flags = flags;
	entry->again = false;
	if (copy) {
		entry->copy = *copy;
		link->backlog_bytes += len;
	} else {
		assert(len <= tq_backlog_room(net));
		entry->copy.reg = NULL;
		memcpy(entry->data, msg, len);
	}
	if (!link->backlog)
		DL_APPEND2(net->waiting, link, waiting_prev, waiting_next);
	return entry;
}

int tq_backlog_append(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		      const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *entry = backlog_new(net, link, msg, len, copy, flags);

	if (!entry)
		return -ENOMEM;
	DL_APPEND(link->backlog, entry);
	return 0;
}

bool tq_backlog_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy)
{
	struct tq_link *link = posted->link;
	struct tq_backlog *entry =
		backlog_new(net, link, posted->bytes, posted->len, copy, posted->flags);

	if (!entry) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "no memory to send a message again");
		return false;
	}
	entry->again = true;
	DL_PREPEND(link->backlog, entry);
	return true;
}

void tq_backlog_pop(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *entry = link->backlog;

	DL_DELETE(link->backlog, entry);
	if (link->backpressure == entry)
		link->backpressure = NULL;
	if (entry->copy.reg)
		link->backlog_bytes -= entry->len;
	if (!link->backlog)
		DL_DELETE2(net->waiting, link, waiting_prev, waiting_next);
	TQ_LEVEL(net->stats, waiting, -1);
	if (net->nbacklog_free == FREE_MAX) {
		free(entry);
		return;
	}
	LL_PREPEND(net->backlog_free, entry);
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
	struct tq_backlog *entry, *next;

	assert(!net->waiting);
	LL_FOREACH_SAFE(net->backlog_free, entry, next)
		free(entry);
}
