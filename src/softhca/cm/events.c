/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c - the list of events of a channel. A FIFO has a token for each event, so the program can
 * poll the descriptor. If a process dies between two stores, an event may lack its token: a reader
 * looks at the list before it waits, and the reaper adds an event about each connection of a dead
 * process. An event of a message that is on its way gets its token from the receiver's engine.
 */
#include "events.h"

#include <errno.h>

#include "deadline.h"
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

struct shca_cm_event *shca_events_arrived(const struct shca_fabric *fabric,
					  const struct shca_cm_channel *channel)
{
	struct shca_cm_event *first = shca_events_first(fabric, channel);

	return first && !first->arrives_at ? first : NULL;
}

/* Puts an event behind those that arrive before it, or with it. */
static void link_event(struct shca_fabric *fabric, struct shca_cm_channel *channel,
		       struct shca_cm_event *event)
{
	uint32_t link = shca_cells_index(fabric, SHCA_CM_EVENT, event) + 1;
	struct shca_cm_event *before = shca_events_first(fabric, channel), *next;

	if (!before || before->arrives_at > event->arrives_at) {
		event->next = channel->first;
		if (!before)
			channel->last = link;
		channel->first = link;
		return;
	}
	next = event_at(fabric, channel->last);
	if (next && next->arrives_at <= event->arrives_at)
		before = next;
	while ((next = event_at(fabric, before->next)) && next->arrives_at <= event->arrives_at)
		before = next;
	event->next = before->next;
	before->next = link;
	if (!event->next)
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
		if (channel->last == link)
			channel->last = event->next;
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
				 uint64_t arrives_at, enum shca_cm_event_type type, int status,
				 uint32_t request)
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
	event->arrives_at = arrives_at;
	event->resp.uid = id->uid;
	event->resp.id = request ? request - 1 : event->id;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	event->used = 1;
	if (arrives_at)
		shca_deadline_announce(fabric, channel->proc, arrives_at);
	link_event(fabric, channel, event);
	if (!arrives_at)
		put_token(fabric, channel, id);
	return event;
}

struct shca_cm_event *shca_events_add(struct shca_fabric *fabric, const struct shca_cm_id *id,
				      enum shca_cm_event_type type, int status)
{
	return shca_events_add_at(fabric, id, 0, type, status);
}

struct shca_cm_event *shca_events_add_at(struct shca_fabric *fabric, const struct shca_cm_id *id,
					 uint64_t arrives_at, enum shca_cm_event_type type,
					 int status)
{
	return id->uid ? add(fabric, id, arrives_at, type, status, 0) : NULL;
}

struct shca_cm_event *shca_events_add_request(struct shca_fabric *fabric,
					      const struct shca_cm_id *listener,
					      uint64_t arrives_at, uint32_t request)
{
	return add(fabric, listener, arrives_at, SHCA_CM_CONNECT_REQUEST, 0, request + 1);
}

/* Shows the events of one channel whose messages have arrived. Returns as shca_events_arrive(). */
static uint64_t arrive(struct shca_fabric *fabric, const struct shca_cm_channel *channel,
		       uint64_t now)
{
	struct shca_cm_event *event = shca_events_first(fabric, channel);

	for (; event; event = shca_events_next(fabric, event)) {
		if (!event->arrives_at)
			continue;
		if (event->arrives_at > now)
			return event->arrives_at;
		put_token(fabric, channel, shca_cm_id(fabric, event->id));
		event->arrives_at = 0;
	}
	return 0;
}

uint64_t shca_events_arrive(struct shca_fabric *fabric, unsigned proc, uint64_t now)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_CHANNEL); i++) {
		const struct shca_cm_channel *channel = shca_cell(fabric, SHCA_CM_CHANNEL, i);
		uint64_t next =
			channel->used && channel->proc == proc ? arrive(fabric, channel, now) : 0;

		if (next && (!first || next < first))
			first = next;
	}
	return first;
}

void shca_events_remove(struct shca_fabric *fabric, struct shca_cm_channel *channel,
			struct shca_cm_event *event, bool token_was_read)
{
	unlink_event(fabric, channel, event);
	event->used = 0;
	if (!token_was_read && !event->arrives_at)
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
		if (!event->arrives_at)
			shca_event_take(fabric, from->proc, from->fifo);
		link_event(fabric, to, event);
		if (!event->arrives_at)
			put_token(fabric, to, shca_cm_id(fabric, id));
	}
}
