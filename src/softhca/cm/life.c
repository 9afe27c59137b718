/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.c - making and destroying identifiers, by their program or when it has ended.
 */
#include "life.h"

#include <errno.h>

#include "connection.h"
#include "deadline.h"
#include "events.h"
#include "fabric/reap.h"
#include "request.h"
#include "resolve.h"

/* Stores the type of the QPs that belong to a port space. */
static int choose_type(const struct rdma_ucm_create_id *cmd, uint8_t *qp_type)
{
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		*qp_type = IBV_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*qp_type = IBV_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*qp_type = cmd->qp_type;
		return 0;
	default:
		return -EINVAL;
	}
}

int64_t shca_life_create(struct shca_fabric *fabric, uint32_t channel,
			 const struct rdma_ucm_create_id *cmd)
{
	const struct shca_cm_channel *at = shca_cell(fabric, SHCA_CM_CHANNEL, channel);
	struct shca_cm_id *id;
	uint8_t qp_type = 0;
	uint32_t idx;
	int rc = choose_type(cmd, &qp_type);

	if (rc)
		return rc;
	id = shca_cells_take(fabric, SHCA_CM_ID, &idx);
	if (!id)
		return -ENOMEM;
	id->proc = at->proc;
	id->node = (uint16_t)fabric->hdr->procs[at->proc].node;
	id->channel = channel;
	id->uid = cmd->uid;
	id->port_space = cmd->ps;
	id->qp_type = qp_type;
	id->used = 1;
	return idx;
}

static struct shca_cm_channel *channel_of(const struct shca_fabric *fabric,
					  const struct shca_cm_id *id)
{
	return shca_cells_find(fabric, SHCA_CM_CHANNEL, id->channel);
}

/* Removes the events about an identifier, or those about a membership of it alone, from a channel.
 */
static void drop_events(struct shca_fabric *fabric, struct shca_cm_channel *channel, uint32_t id,
			uint32_t group)
{
	struct shca_cm_event *event, *next;

	for (event = shca_events_first(fabric, channel); event; event = next) {
		next = shca_events_next(fabric, event);
		if (event->id == id && (!group || event->group == group))
			shca_events_remove(fabric, channel, event, false);
	}
}

/* Ends an identifier that has no events of its own in a channel. */
static void end(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	shca_connection_destroyed(fabric, id);
	id->used = 0;
}

/* Destroys the requests that a listener's program hasn't got. */
static void drop_requests(struct shca_fabric *fabric, const struct shca_cm_id *listener)
{
	uint32_t link = shca_cm_id_index(fabric, listener) + 1;

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (id->used && id->listener == link)
			end(fabric, id);
	}
}

static void leave_groups(struct shca_fabric *fabric, uint32_t id)
{
	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_GROUP); i++) {
		struct shca_cm_group *group = shca_cell(fabric, SHCA_CM_GROUP, i);

		if (group->used && group->id == id)
			group->used = 0;
	}
}

uint32_t shca_life_destroy(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	struct shca_cm_channel *channel = channel_of(fabric, id);
	uint32_t idx = shca_cm_id_index(fabric, id), reported = id->events_reported;
	bool listens = id->state == SHCA_CM_LISTEN;

	/* No request arrives from here on. */
	id->state = SHCA_CM_IDLE;
	if (channel)
		drop_events(fabric, channel, idx, 0);
	if (listens)
		drop_requests(fabric, id);
	leave_groups(fabric, idx);
	end(fabric, id);
	return reported;
}

uint32_t shca_life_migrate(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t channel)
{
	struct shca_cm_channel *from = channel_of(fabric, id),
			       *to = shca_cell(fabric, SHCA_CM_CHANNEL, channel);

	if (from && from != to)
		shca_events_move(fabric, shca_cm_id_index(fabric, id), from, to);
	id->channel = channel;
	return id->events_reported;
}

uint32_t shca_life_leave(struct shca_fabric *fabric, struct shca_cm_group *group)
{
	const struct shca_cm_id *id = shca_cm_id(fabric, group->id);
	struct shca_cm_channel *channel = id ? channel_of(fabric, id) : NULL;

	if (channel)
		drop_events(fabric, channel, group->id,
			    shca_cells_index(fabric, SHCA_CM_GROUP, group) + 1);
	group->used = 0;
	return group->events_reported;
}

/* Destroys the identifiers of a channel, and then the channel. */
static void end_channel(struct shca_fabric *fabric, uint32_t idx)
{
	struct shca_cm_channel *channel = shca_cell(fabric, SHCA_CM_CHANNEL, idx);
	struct shca_cm_event *event;

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (id->used && id->channel == idx)
			shca_life_destroy(fabric, id);
	}
	while ((event = shca_events_first(fabric, channel)))
		shca_events_remove(fabric, channel, event, false);
	channel->used = 0;
}

void shca_life_close(struct shca_fabric *fabric, uint32_t channel)
{
	int cancel = shca_cells_lock(fabric);

	end_channel(fabric, channel);
	shca_cells_unlock(fabric, cancel);
}

/* Resolves, asks again, answers again or gives up, at an identifier's deadline. */
static void serve(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	id->deadline = 0;
	if (id->state == SHCA_CM_RESOLVING || id->state == SHCA_CM_ROUTING)
		shca_resolve_due(fabric, id);
	else if (id->link == SHCA_CM_LINK_REQ_SENT || id->link == SHCA_CM_LINK_SIDR_SENT)
		shca_request_resend(fabric, id);
	else
		shca_connection_due(fabric, id);
}

void shca_life_serve(struct shca_fabric *fabric, unsigned proc)
{
	int cancel = shca_cells_lock(fabric);
	uint64_t now = shca_deadline_now(fabric);

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (id->used && id->proc == proc && id->deadline && id->deadline <= now)
			serve(fabric, id);
	}
	shca_deadline_renew(fabric, proc, shca_events_arrive(fabric, proc, now));
	shca_cells_unlock(fabric, cancel);
}

static void reap(struct shca_fabric *fabric, unsigned proc)
{
	int cancel = shca_cells_lock(fabric);

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_CHANNEL); i++) {
		const struct shca_cm_channel *channel = shca_cell(fabric, SHCA_CM_CHANNEL, i);

		if (channel->used && channel->proc == proc)
			end_channel(fabric, i);
	}
	shca_cells_unlock(fabric, cancel);
}

void shca_life_watch(void)
{
	shca_reap_connections = reap;
}
