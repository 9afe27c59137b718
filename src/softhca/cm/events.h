/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.h - channels, and the events that wait in them.
 */
#ifndef SHCA_CM_EVENTS_H
#define SHCA_CM_EVENTS_H

#include "cells.h"

/* Types of events, as enum rdma_cm_event_type of <rdma/rdma_cma.h> has them. */
enum shca_cm_event_type {
	SHCA_CM_ADDR_RESOLVED,
	SHCA_CM_ADDR_ERROR,
	SHCA_CM_ROUTE_RESOLVED,
	SHCA_CM_ROUTE_ERROR,
	SHCA_CM_CONNECT_REQUEST,
	SHCA_CM_CONNECT_RESPONSE,
	SHCA_CM_CONNECT_ERROR,
	SHCA_CM_UNREACHABLE,
	SHCA_CM_REJECTED,
	SHCA_CM_ESTABLISHED,
	SHCA_CM_DISCONNECTED,
	SHCA_CM_DEVICE_REMOVAL,
	SHCA_CM_MULTICAST_JOIN,
	SHCA_CM_MULTICAST_ERROR,
	SHCA_CM_ADDR_CHANGE,
	SHCA_CM_TIMEWAIT_EXIT,
};

/* Makes a channel of a process, whose FIFO is there already. Returns its index or -ENOMEM. */
int64_t shca_channel_make(struct shca_fabric *fabric, unsigned proc, uint32_t fifo);

/* Adds an event about an identifier to its channel, with nothing but type and status. Returns the
 * event, whose details the caller fills in before the lock is released; NULL if the program isn't
 * told: it hasn't accepted the request yet, or there is no memory. */
struct shca_cm_event *shca_events_add(struct shca_fabric *fabric, const struct shca_cm_id *id,
				      enum shca_cm_event_type type, int status);
/* Adds an event that reports a message, which arrives at that time; 0: it is there. */
struct shca_cm_event *shca_events_add_at(struct shca_fabric *fabric, const struct shca_cm_id *id,
					 uint64_t arrives_at, enum shca_cm_event_type type,
					 int status);
/* Adds the event of a connection request, `request`, to its listener's channel. */
struct shca_cm_event *shca_events_add_request(struct shca_fabric *fabric,
					      const struct shca_cm_id *listener,
					      uint64_t arrives_at, uint32_t request);
/* Shows the programs of a process the events whose messages have arrived at time `now`. Returns
 * when the next message arrives, 0: none is on its way. */
uint64_t shca_events_arrive(struct shca_fabric *fabric, unsigned proc, uint64_t now);
/* Returns the first event of a channel that its program may see, or NULL. */
struct shca_cm_event *shca_events_arrived(const struct shca_fabric *fabric,
					  const struct shca_cm_channel *channel);
/* Returns the first event of a channel, or NULL. */
struct shca_cm_event *shca_events_first(const struct shca_fabric *fabric,
					const struct shca_cm_channel *channel);
/* Returns the next event after one in a channel, or NULL. */
struct shca_cm_event *shca_events_next(const struct shca_fabric *fabric,
				       const struct shca_cm_event *event);
/* Removes an event from a channel, with its token unless that was read already. The calling process
 * has the channel, or the process that had it is dead. */
void shca_events_remove(struct shca_fabric *fabric, struct shca_cm_channel *channel,
			struct shca_cm_event *event, bool token_was_read);
/* Moves the events about an identifier from its channel to another one of the same process. */
void shca_events_move(struct shca_fabric *fabric, uint32_t id, struct shca_cm_channel *from,
		      struct shca_cm_channel *to);

#endif
