/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outbox: this process's end of its ring in the inbox of another process of the node (inbox.h).
 * A link has one once the other process has given it a ring with the answer for the control lane.
 */
#ifndef TQ_NET_OUTBOX_H
#define TQ_NET_OUTBOX_H

#include "net/adapter/ring.h"
#include "net/peers/link.h"

/* Attaches the inbox of the link's process, if that is on this node and shares it. Returns true if
 * this process can use a ring there. */
bool tq_outbox_attach(struct tq_net *net, struct tq_link *link);
/* Takes the ring that the process has given to this one, of a size that there can be. -EPROTO:
 * there is no such ring. */
int tq_outbox_open(struct tq_link *link, uint32_t number, uint32_t size);
/* Gives the process id and the place of the proof that the attached inbox names; neither need be
 * true. */
void tq_outbox_owner(const struct tq_link *link, pid_t *pid, uint64_t *proof);
/* Tells the process that what the last RTS in the ring say of this one's memory is not true any
 * more: this process is about to end those sends with an error. */
void tq_outbox_cut(struct tq_link *link);
/* Stops writing to the ring: from now on the process may give the ring to another one. */
void tq_outbox_leave(struct tq_link *link);
/* Gives up the inbox, with the ring. */
void tq_outbox_close(struct tq_net *net, struct tq_link *link);

/* Returns true if messages to the link's process will probably go through a ring. */
static inline bool tq_outbox_is_attached(const struct tq_link *link)
{
	return link->outbox;
}
/* Returns true if messages to the link's process go through a ring. */
bool tq_outbox_is_open(const struct tq_link *link);
/* Returns the place for a message of `len` bytes, which the next tq_outbox_send() doesn't copy if
 * it is there; NULL: there is no room now, or tq_outbox_leave() was called. */
void *tq_outbox_room(struct tq_link *link, uint32_t len);
/* Sends a message, which is copied. After tq_outbox_leave() the message is dropped. -EAGAIN: there
 * is no room; this process is woken when there is. -EIO: the link has failed. */
int tq_outbox_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		   unsigned flags);

#endif
