/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. All with the library's lock. */
#ifndef P4_EQ_H
#define P4_EQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <portals4.h>

struct p4_ni;

struct p4_eq {
	struct p4_ni *ni;
	/* Events for messages under way, with flow control. Guarded by the library's lock. */
	ptl_size_t reserved;
	struct p4_eq *next_free;
	pthread_mutex_t lock;
	/* Guarded by `lock`; `used` may be read without it. */
	ptl_handle_eq_t handle; /* PTL_INVALID_HANDLE: the queue was freed */
	ptl_event_t *ring;
	ptl_size_t size;  /* of the ring, in events; more than `count` once it has grown */
	ptl_size_t count; /* events that the user may rely on */
	ptl_size_t first;
	_Atomic ptl_size_t used;
	bool dropped; /* since the last event that was taken */
};

/* Adds an event. A full queue grows if `keep` is true. Otherwise, or without memory, the oldest
 * event is lost. */
void p4_eq_post(struct p4_eq *eq, const ptl_event_t *event, bool keep);
/* Returns how many of the `count` places are free or reserved. */
ptl_size_t p4_eq_room(struct p4_eq *eq);
/* Returns the queue of a handle; NULL for PTL_EQ_NONE. Sets *ok to false if it isn't valid for the
 * interface. */
struct p4_eq *p4_eq_of(const struct p4_ni *ni, ptl_handle_eq_t handle, bool *ok);
/* Frees the queue. Its memory is kept, and used by queues only, because a thread that waits may
 * still look at it. */
void p4_eq_destroy(struct p4_eq *eq);
/* Frees the memory of queues that were freed. */
void p4_eqs_destroy(void);

#endif
