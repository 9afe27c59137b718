/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.c - completion channels: the descriptor on which an application waits for armed CQs.
 */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/event.h"
#include "hca/context_objects.h"
#include "hca/event_ack.h"
#include "hca/queues/cq.h"
#include "hca/timing.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_channel *channel;
	int64_t id;

	channel = calloc(1, sizeof(*channel));
	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	if (!shca_ours(context))
		id = -EIO;
	else
		id = shca_event_create(&shca_self.fabric, shca_self.slot, &channel->ibv.fd);
	if (id < 0) {
		free(channel);
		errno = (int)-id;
		return NULL;
	}
	channel->id = (uint32_t)id;
	channel->ibv.context = context;
	shca_context_objects_add(context, &channel->context_node, SHCA_OBJECT_CHANNEL, channel);
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_channel *channel = (struct shca_channel *)ibchannel;
	struct ibv_context *context = ibchannel->context;
	int refs;

	if (!shca_ours(context))
		return EIO;
	/* refcnt counts CQs; as in libibverbs, creating and destroying a CQ takes this lock. */
	pthread_mutex_lock(&context->mutex);
	refs = ibchannel->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (refs)
		return EBUSY;
	shca_context_objects_remove(&channel->context_node);
	shca_event_destroy(&shca_self.fabric, shca_self.slot, channel->id, ibchannel->fd);
	free(channel);
	return 0;
}

/* Reads the next event, and waits for one if the descriptor blocks. Returns false with errno if
 * there is none. */
static bool read_event(int fd, struct shca_event *ev)
{
	return shca_timing.read_channel(fd, ev, sizeof(*ev)) == (ssize_t)sizeof(*ev);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	SHCA_CLOCKED(EVENT, 1);
	struct shca_context *ctx = shca_ctx(channel->context);
	struct shca_event ev;
	struct ibv_cq *found = NULL;

	/* A record that a child reads here would be missing in its parent. */
	if (!shca_ours(channel->context)) {
		errno = EIO;
		return -1;
	}
	while (!found) {
		if (!read_event(channel->fd, &ev))
			return -1;
		if (ev.kind != SHCA_EVENT_COMP)
			continue;
		shca_event_ack_lock();
		found = shca_cq_by_idx(ctx, ev.idx, ev.number);
		if (found)
			shca_event_ack_expect(&found->mutex,
					      &((struct shca_cq *)found)->comp_events_given);
		shca_event_ack_unlock();
	}
	*cq = found;
	*cq_context = found->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		shca_event_ack_done(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}
