/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of control messages: the lane, credit and header of each, and those that wait. */
#ifndef TQ_NET_POST_H
#define TQ_NET_POST_H

#include "net/lanes/lane.h"
#include "net/peers/link.h"

/* ---- control messages that wait for the connection, for credit, or for room in the send queue
 * ---- */

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
/* Removes the first message, whose copy is the caller's. */
void tq_backlog_pop(struct tq_net *net, struct tq_link *link);
/* Removes all messages to the link, with their copies. */
void tq_backlog_drop(struct tq_net *net, struct tq_link *link);
/* Frees the entries that are kept for the next messages. */
void tq_backlog_close(struct tq_net *net);

/* Returns the class of the buffers of the link's process that a message of this length needs. */
static inline int tq_post_class(const struct tq_link *link, uint32_t len)
{
	return len <= link->size[TQ_SMALL] ? TQ_SMALL : TQ_LARGE;
}

/* Returns the control lane to the link if messages can go there at all. Else asks for the lane, and
 * returns NULL. */
struct tq_lane *tq_post_lane(struct tq_net *net, struct tq_link *link);
/* Returns true if a message of this length can go now. Else asks for the lane if there is none, as
 * tq_post_lane() does. */
bool tq_post_prepare(struct tq_net *net, struct tq_link *link, uint32_t len);
/* Returns the place where a message of this length is written to, so that it goes without a copy;
 * NULL: it can't go now, or is too long for that. Asks for the lane, too. *lane is the lane on
 * which tq_post_written() then sends the message; NULL: tq_post() sends it. */
void *tq_post_room(struct tq_net *net, struct tq_link *link, uint32_t len, struct tq_lane **lane);
/* Posts a message that was written to the room on the lane, which tq_post_room() has just found.
 * Results are those of tq_post(). */
int tq_post_written(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, void *msg,
		    uint32_t len, unsigned flags);
/* Posts the message, or the one in `copy`, if there is credit for it; fills in its header. Takes
 * the copy over if it succeeds. Returns 0, -EAGAIN if the message has to wait, or -EIO. */
int tq_post(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
	    const struct tq_sg *copy, unsigned flags);
/* Posts a message that has its header and its credit, as it was posted before. */
int tq_post_again(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
		  const struct tq_sg *copy, unsigned flags);

#endif
