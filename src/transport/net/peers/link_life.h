/* SPDX-License-Identifier: BSD-3-Clause */
/* How links begin and how they fail, and whether a process whose connection failed has died. */
#ifndef TQ_NET_LINK_LIFE_H
#define TQ_NET_LINK_LIFE_H

#include "net/adapter/address.h"
#include "net/adapter/objects.h"
#include "net/peers/link.h"
#include "net/peers/oob.h"

/* Returns true if the process is known to have ended; false: the process lives, or nobody here can
 * tell. */
bool tq_fate_has_died(const struct tq_net *net, const struct tq_link *link);
/* Ends an inquiry without an answer. */
void tq_fate_conclude(struct tq_net *net, struct tq_link *link);
/* Returns true while an inquiry is under way. */
bool tq_fate_is_open(const struct tq_link *link);
/* Handles TQ_OOB_ASK and TQ_OOB_FATE. */
void tq_fate_on_datagram(struct tq_net *net, const struct tq_oob_hdr *datagram);
/* Returns the end of the sentence for the log, which says what to look at; "": nothing. */
const char *tq_fate_text(const struct tq_link *link);

/* ---- links are made when a process is added as a peer, or asks for a connection before that ----
 */

/* Makes a link to the process at the address, which has none yet. Returns 0, -EIO if the network is
 * broken, or -ENOMEM. */
int tq_link_make(struct tq_net *net, const struct tq_address *address, struct tq_link **made);
/* Makes the link of a process that asked before it was a peer. NULL: the address is invalid, or
 * there are too many such processes. */
struct tq_link *tq_link_make_unnamed(struct tq_net *net, const struct tq_address *address);

/* ---- links fail, and tell their processes ---- */

/* Why a link fails. */
enum tq_fail {
	TQ_FAIL_GIVEN_UP, /* by a decision here; the sentence is "The connection to X was given up:
			     " and what the caller says */
	TQ_FAIL_KNOWN,    /* the caller's sentence says all */
	TQ_FAIL_LOST      /* its process may have died, which is found out before the report */
};

/*
 * Marks the link as failed, once, with a sentence for the log. Nothing more is posted towards its
 * process. In tq_links_tear_down() the process is told, and what is under way ends: so the caller
 * may go on with its links, lanes and requests.
 */
void tq_link_fail(struct tq_net *net, struct tq_link *link, enum tq_fail how, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

/* Tells the link's process that the link has failed here, and again until it knows. Only one
 * direction may have failed: what that process sends still comes, and is dropped, so it would wait
 * for answers for ever. */
void tq_link_cut(struct tq_net *net, struct tq_link *link);
/* Handles CUT, by which a process says that its connection to this one has failed, and CUT_ACK, by
 * which it says that it knows of the failure here. */
void tq_link_on_cut(struct tq_net *net, const struct tq_oob_hdr *cut);
/* Stops telling the link's process that the link has failed here. */
void tq_link_cut_end(struct tq_net *net, struct tq_link *link);

#endif
