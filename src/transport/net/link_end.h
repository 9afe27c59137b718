/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of links that have failed: tearing down, and the report. */
#ifndef TQ_NET_LINK_END_H
#define TQ_NET_LINK_END_H

#include "net/adapter/objects.h"

/* Ends the work here of the links that tq_link_fail() marked. To be called where nobody iterates
 * over lanes or requests. */
void tq_links_tear_down(struct tq_net *net);
/* Reports to the user that the link has failed: logs why, counts the failure, unless nothing was
 * lost, and lets calls with the peer fail from now on (tq_link_is_logged()). */
void tq_link_report_failure(struct tq_net *net, struct tq_link *link);
/* Returns true if the link has failed and the log has said why, so the user may know. */
bool tq_link_is_logged(const struct tq_link *link);

#endif
