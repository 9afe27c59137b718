/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether a process whose connection failed has died. */
#ifndef TQ_NET_FATE_H
#define TQ_NET_FATE_H

#include "net/peers/contact.h"

/* Finds out whether the link's process can be watched from here. To be called when the link is
 * made.
 */
void tq_fate_watch(const struct tq_net *net, struct tq_link *link);
/* Returns true if the process is known to have ended; false: the process lives, or nobody here can
 * tell. */
bool tq_fate_has_died(const struct tq_net *net, const struct tq_link *link);
/* Starts the inquiry: the link has failed, and that may be because its process has died. */
void tq_fate_inquire(struct tq_net *net, struct tq_link *link);
/* Ends an inquiry with its answer. Does nothing if no inquiry is under way. */
void tq_fate_decide(struct tq_net *net, struct tq_link *link, enum tq_fate fate);
/* Ends an inquiry without an answer. */
void tq_fate_conclude(struct tq_net *net, struct tq_link *link);
/* Returns true while an inquiry is under way. */
bool tq_fate_is_open(const struct tq_link *link);
/* Handles TQ_OOB_ASK and TQ_OOB_FATE. */
void tq_fate_on_datagram(struct tq_net *net, const struct tq_oob_hdr *datagram);
/* Returns the end of the sentence for the log, which says what to look at; "": nothing. */
const char *tq_fate_text(const struct tq_link *link);

#endif
