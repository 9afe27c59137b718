/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inbox of this process: a segment with a ring for each process of its node that sends to it,
 * in place of control buffers. A process that has a ring needs no credits.
 */
#ifndef TQ_NET_INBOX_H
#define TQ_NET_INBOX_H

#include "net/peers/link.h"

/* Opens the inbox. Returns 0, too, if there is none: without shared memory, or with intranode=hca.
 */
int tq_inbox_open(struct tq_net *net);
void tq_inbox_close(struct tq_net *net);
/* Returns the name by which others attach the inbox; 0: there is none. */
uint64_t tq_inbox_name(const struct tq_net *net);

/* Tells the processes that attach the inbox where in this one's memory its nonce is. */
void tq_inbox_prove(struct tq_net *net, const uint64_t *nonce);

/* Gives the link's process a ring. Returns false if there is none left. */
bool tq_inbox_give(struct tq_net *net, struct tq_link *link);
/* Returns the number of the link's ring, and its size. */
uint32_t tq_inbox_ring(const struct tq_net *net, const struct tq_link *link, uint32_t *size);
/* Returns true if the link's process has no ring, or has said in it (tq_outbox_cut()) that its
 * memory is no longer what its RTS announced. Data read from that memory before a call that returns
 * false are those that the RTS announced. */
bool tq_inbox_is_cut(const struct tq_link *link);
/* Takes the ring away from the link, which goes. */
void tq_inbox_forget(struct tq_net *net, struct tq_link *link);

/* Handles messages. Returns the number of messages. */
int tq_inbox_poll(struct tq_net *net);
/* Handles all messages that the link's process has sent. */
void tq_inbox_finish(struct tq_net *net, struct tq_link *link);
/* Has senders wake this process: for all messages, or only for those that can't wait. Messages that
 * were sent before this call wake nobody: the caller has to call tq_inbox_poll() before it sleeps.
 */
void tq_inbox_sleep(struct tq_net *net, bool all);

#endif
