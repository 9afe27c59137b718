/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - event channels: a FIFO that its owner polls and reads, and that any process of the
 * fabric writes to, so that an event needs neither the owner's engine nor a descriptor handed over.
 */
#ifndef SHCA_EVENT_H
#define SHCA_EVENT_H

#include "fabric.h"

/* A record in the FIFO; 16 bytes, so that a write is atomic. */
struct shca_event {
	uint32_t kind;   /* ibv_event_type for async events, SHCA_EVENT_COMP for completions */
	uint32_t idx;    /* table index of the object, or the port */
	uint64_t number; /* of the object, to drop what is about one that is gone */
};
#define SHCA_EVENT_COMP 0x10000u

/* Makes a channel of the calling process `proc`; *fd is the readable end. The id, or -errno. */
int64_t shca_event_create(struct shca_fabric *f, unsigned proc, int *fd);
/* Ends it, and closes fd unless that is negative. */
void shca_event_destroy(struct shca_fabric *f, unsigned proc, uint32_t id, int fd);
/* Writes a record to channel `id` of process `proc`. Never blocks; an event that finds the FIFO
 * full or gone is counted in SHCA_C_EVENTS_LOST of hca. */
void shca_event_send(struct shca_fabric *f, struct shca_hca *hca, unsigned proc, uint32_t id,
		     const struct shca_event *ev);
/* Takes the records about an object that is gone out of the own channel `id`, as the kernel does
 * when an object is destroyed: a poll of the channel says nothing of them, and a read doesn't wait
 * in vain. */
void shca_event_forget(struct shca_fabric *f, unsigned proc, uint32_t id, uint32_t idx,
		       uint64_t number);
/* Returns true if it is the readable end of a channel of this process. */
bool shca_event_is_channel(int fd);
/* Forgets cached descriptors (in a forked child). */
void shca_event_reset(void);

/* Sends an event about a QP to its owner (an XRC target QP: to each process that has it open). Any
 * process. */
void shca_event_send_qp(struct shca_fabric *f, struct shca_hca *hca, const struct shca_qp_entry *e,
			enum ibv_event_type type);

#endif
