/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c - the list of events of a channel. A FIFO has a token for each event, so the program can
 * poll the descriptor. If a process dies between two stores, an event may lack its token: a reader
 * looks at the list before it waits, and the reaper adds an event about each connection of a dead
 * process.
 */
#include "events.h"

#include <errno.h>

#include "fabric/event.h"

int64_t shca_channel_make(struct shca_fabric *fabric, unsigned proc, uint32_t fifo)
{
	uint32_t idx;
	struct shca_cm_channel *channel = shca_cells_take(fabric, SHCA_CM_CHANNEL, &idx);

	if (!channel)
		return -ENOMEM;
	channel->proc = proc;
	channel->fifo = fifo;
	channel->used = 1;
	return idx;
}

static struct shca_cm_event *event_at(const struct shca_fabric *fabric, uint32_t link)
{
	return link ? shca_cells_find(fabric, SHCA_CM_EVENT, link - 1) : NULL;
}

struct shca_cm_event *shca_events_first(const struct shca_fabric *fabric,
					const struct shca_cm_channel *channel)
{
	return event_at(fabric, channel->first);
}

struct shca_cm_event *shca_events_next(const struct shca_fabric *fabric,
				       const struct shca_cm_event *event)
{
	return event_at(fabric, event->next);
}

static void link_last(struct shca_fabric *fabric, struct shca_cm_channel *channel,
		      struct shca_cm_event *event)
{
	uint32_t link = shca_cells_index(fabric, SHCA_CM_EVENT, event) + 1;
	struct shca_cm_event *last, *next;

	event->next = 0;
	if (!channel->first) {
		channel->last = link;
		channel->first = link;
		return;
	}
	last = event_at(fabric, channel->last);
	while ((next = event_at(fabric, last->next)))
		last = next;
	last->next = link;
	channel->last = link;
}

static void unlink_event(struct shca_fabric *fabric, struct shca_cm_channel *channel,
			 const struct shca_cm_event *event)
{
	uint32_t link = shca_cells_index(fabric, SHCA_CM_EVENT, event) + 1;
	struct shca_cm_event *before = NULL, *at = shca_events_first(fabric, channel);

	while (at && at != event) {
		before = at;
		at = shca_events_next(fabric, at);
	}
	if (!at)
		return;
	if (!before) {
		channel->first = event->next;
		return;
	}
	if (channel->last == link)
		channel->last = shca_cells_index(fabric, SHCA_CM_EVENT, before) + 1;
	before->next = event->next;
}

/* Makes the channel's descriptor readable once more. */
static void put_token(struct shca_fabric *fabric, const struct shca_cm_channel *channel,
		      const struct shca_cm_id *id)
{
	const struct shca_event token = {SHCA_EVENT_CM, 0, 0};
	unsigned hca = id && id->hca ? id->hca - 1 : 0;

	shca_event_send(fabric, &fabric->hdr->hcas[hca], channel->proc, channel->fifo, &token);
}

static struct shca_cm_event *add(struct shca_fabric *fabric, const struct shca_cm_id *id,
				 enum shca_cm_event_type type, int status, uint32_t request)
{
	struct shca_cm_channel *channel = shca_cells_find(fabric, SHCA_CM_CHANNEL, id->channel);
	struct shca_cm_event *event;
	uint32_t idx;

	if (!channel)
		return NULL;
	event = shca_cells_take(fabric, SHCA_CM_EVENT, &idx);
	if (!event)
		return NULL;
	event->id = shca_cm_id_index(fabric, id);
	event->request = request;
	event->resp.uid = id->uid;
	event->resp.id = request ? request - 1 : event->id;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	event->used = 1;
	link_last(fabric, channel, event);
	put_token(fabric, channel, id);
	return event;
}

struct shca_cm_event *shca_events_add(struct shca_fabric *fabric, const struct shca_cm_id *id,
				      enum shca_cm_event_type type, int status)
{
	return id->uid ? add(fabric, id, type, status, 0) : NULL;
}

struct shca_cm_event *shca_events_add_request(struct shca_fabric *fabric,
					      const struct shca_cm_id *listener, uint32_t request)
{
	return add(fabric, listener, SHCA_CM_CONNECT_REQUEST, 0, request + 1);
}

void shca_events_remove(struct shca_fabric *fabric, struct shca_cm_channel *channel,
			struct shca_cm_event *event, bool token_was_read)
{
	unlink_event(fabric, channel, event);
	event->used = 0;
	if (!token_was_read)
		shca_event_take(fabric, channel->proc, channel->fifo);
}

void shca_events_move(struct shca_fabric *fabric, uint32_t id, struct shca_cm_channel *from,
		      struct shca_cm_channel *to)
{
	struct shca_cm_event *event, *next;

	for (event = shca_events_first(fabric, from); event; event = next) {
		next = shca_events_next(fabric, event);
		if (event->id != id)
			continue;
		unlink_event(fabric, from, event);
		shca_event_take(fabric, from->proc, from->fifo);
		link_last(fabric, to, event);
		put_token(fabric, to, shca_cm_id(fabric, id));
	}
}
