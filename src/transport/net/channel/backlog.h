/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages that wait for the connection, for credit, or for room in the send queue. */
#ifndef TQ_NET_BACKLOG_H
#define TQ_NET_BACKLOG_H

#include "net/lanes/lane.h"

struct tq_backlog {
	struct tq_backlog *next, *prev; /* tq_link.backlog; next: tq_net.backlog_free */
	uint32_t len;
	unsigned flags;
	bool again;        /* it was posted before, and has its header and its credit */
	struct tq_sg copy; /* where the message is; reg NULL: in data[] */
	uint8_t data[];    /* room for limits.max_inline bytes, and for any message without data */
};

/* Returns the bytes of data[]. */
uint32_t tq_backlog_room(const struct tq_net *net);
/* Appends a message: `msg` is copied, unless it is in `copy`, which is taken over. Returns 0 or
 * -ENOMEM. */
int tq_backlog_append(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		      const struct tq_sg *copy, unsigned flags);
/* Puts the posted message in front of the link's backlog; `copy` is taken over, unless it is NULL.
 * Returns false if there is no memory for that, so the link has failed. */
bool tq_backlog_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy);
/* Removes the first message, whose copy is the caller's. */
void tq_backlog_pop(struct tq_net *net, struct tq_link *link);
/* Removes all messages to the link, with their copies. */
void tq_backlog_drop(struct tq_net *net, struct tq_link *link);
/* Frees the entries that are kept for the next messages. */
void tq_backlog_close(struct tq_net *net);

#endif
