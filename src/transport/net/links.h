/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as the endpoint and its peers see them: peers are added and removed, processes leave, and
 * links that have failed end. */
#ifndef TQ_NET_LINKS_H
#define TQ_NET_LINKS_H

#include "net/adapter/objects.h"
#include "net/peers/oob.h"

/* ---- the end of links that have failed: tearing down, and the report ---- */

/* Ends the work here of the links that tq_link_fail() marked. To be called where nobody iterates
 * over lanes or requests. */
void tq_links_tear_down(struct tq_net *net);
/* Reports to the user that the link has failed: logs why, counts the failure, unless nothing was
 * lost, and lets calls with the peer fail from now on (tq_link_is_logged()). */
void tq_link_report_failure(struct tq_net *net, struct tq_link *link);
/* Returns true if the link has failed and the log has said why, so the user may know. */
bool tq_link_is_logged(const struct tq_link *link);

/* ---- leaving: goodbyes (BYE), their answers (BYE_ACK), and processes that are gone ---- */

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

/* ---- peers as the endpoint adds and removes them ---- */

/* Makes the process at the address a peer. `name` is for log texts and must stay valid. Returns 0,
 * -EPROTO (the address isn't valid), -ENETUNREACH, -EEXIST (it is a peer already), -EIO or -ENOMEM.
 */
int tq_link_add(struct tq_net *net, const void *address, size_t len, struct tq_peer *peer,
		const char *name, struct tq_link **link);
/* Returns the peer with that address, or NULL. */
struct tq_peer *tq_link_peer(struct tq_net *net, const void *address, size_t len);
/* Frees the link, with all that is known and kept of its process. */
void tq_link_remove(struct tq_net *net, struct tq_link *link);
/* Frees all links, at the end. */
void tq_links_free(struct tq_net *net);

#endif
