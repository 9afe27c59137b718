/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - event channels: a FIFO that its owner polls and reads, and that any process of the
 * fabric writes to. An event therefore needs neither the owner's engine nor a descriptor handed
 * over.
 */
#ifndef SHCA_EVENT_H
#define SHCA_EVENT_H

#include "fabric.h"

/* A record in the FIFO; 16 bytes, so that a write is atomic. */
struct shca_event {
	uint32_t kind;   /* ibv_event_type of asynchronous events, SHCA_EVENT_COMP of completions */
	uint32_t idx;    /* table index of the object, or the port */
	uint64_t number; /* number of the object: records about objects that are gone are dropped */
};
#define SHCA_EVENT_COMP 0x10000u
#define SHCA_EVENT_CM   0x10001u /* a token for an event of the connection manager */

/* Makes a channel of the calling process `proc`; *fd is the readable end. Returns the channel's
 * id, or -errno. */
int64_t shca_event_create(struct shca_fabric *fabric, unsigned proc, int *fd);
/* Ends a channel, and closes fd unless fd is negative. */
void shca_event_destroy(struct shca_fabric *fabric, unsigned proc, uint32_t id, int fd);
/* Writes a record to channel `id` of process `proc`. Never blocks; SHCA_C_EVENTS_LOST of hca
 * counts events that find the FIFO full or gone. */
void shca_event_send(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc, uint32_t id,
		     const struct shca_event *ev);
/* Removes the records about an object that is gone from the own channel `id`, as the kernel does
 * when an object is destroyed: a poll of the channel doesn't report them, and a read doesn't
 * wait in vain. SHCA_C_EVENTS_LOST of hca counts other records for which others leave no room
 * meanwhile. */
void shca_event_forget(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc, uint32_t id,
		       uint32_t idx, uint64_t number);
/* Takes a record, if there is one, from channel `id` of the calling process, whether or not its
 * descriptor blocks. */
void shca_event_take(struct shca_fabric *fabric, unsigned proc, uint32_t id);
/* Returns true if a descriptor is the readable end of a channel of this process. Descriptors from
 * 4096 on are not recognised. */
bool shca_event_is_channel(int fd);
/* Notes that a descriptor is a readable end, as a duplicate of one is. */
void shca_event_note(int fd);
/* Forgets all descriptors, in a forked child. */
void shca_event_reset(void);

/* Sends an event about a QP to its owner (an XRC target QP: to each process that has it open).
 * Any process. */
void shca_event_send_qp(struct shca_fabric *fabric, struct shca_hca *hca,
			const struct shca_qp_entry *entry, enum ibv_event_type type);

#endif
