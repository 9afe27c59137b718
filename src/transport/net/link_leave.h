/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving: goodbyes (BYE), their answers (BYE_ACK), and processes that are gone. */
#ifndef TQ_NET_LINK_LEAVE_H
#define TQ_NET_LINK_LEAVE_H

#include "net/adapter/objects.h"
#include "net/peers/datagram.h"

/* Handles BYE and BYE_ACK. */
void tq_link_on_bye(struct tq_net *net, const struct tq_oob_hdr *datagram);
/* Sends each BYE_ACK that is due. The caller has waited until all that was sent has arrived. */
void tq_links_send_bye_acks(struct tq_net *net);

/*
 * Says goodbye to the link's process, or to all, because their links are about to go. A process
 * that may still send CREDIT has to stop, since a late one would break its lane.
 */
void tq_link_leave(struct tq_net *net, struct tq_link *link);
void tq_links_leave(struct tq_net *net);
/* Each returns true if the processes have sent BYE_ACK, or the wait for it is over, and no datagram
 * is under way, whose address handle may go with its link. */
bool tq_link_has_left(const struct tq_net *net, const struct tq_link *link);
bool tq_links_have_left(const struct tq_net *net);
/* Ends the work that waits for a connection to a process that has left, or is to be posted to it.
 * The adapter still carries out posted work. */
void tq_link_abandon(struct tq_net *net, struct tq_link *link);

#endif
