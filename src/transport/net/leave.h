/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving: goodbyes, the promises that answer them, and processes that are gone. */
#ifndef TQ_NET_LEAVE_H
#define TQ_NET_LEAVE_H

#include "net/datagram.h"
#include "net/objects.h"

/* Handles a goodbye, or the promise that answers this process's. */
void tq_on_bye(struct tq_net *net, const struct tq_oob_hdr *datagram);
/* Returns true if sends are under way that end only by what the link's process does. */
bool tq_link_waits(const struct tq_link *link);
/* Sends the promises that are due, when all that was sent has arrived. */
void tq_acks_send(struct tq_net *net);

/*
 * The link, or all, are about to go: asks those that may still send CREDIT to stop, since what is
 * late breaks their lane.
 */
void tq_link_leave(struct tq_net *net, struct tq_link *link);
void tq_connections_leave(struct tq_net *net);
/* Each returns true if those have promised to stop, or a moment is over, and no datagram is under
 * way, whose address handle may go with its link. */
bool tq_link_left(const struct tq_net *net, const struct tq_link *link);
bool tq_connections_left(const struct tq_net *net);
/* Nothing more comes from the link, which has left: ends what waits for a connection, or is to be
 * posted. The adapter still carries out what is posted. */
void tq_link_abandon(struct tq_net *net, struct tq_link *link);

#endif
