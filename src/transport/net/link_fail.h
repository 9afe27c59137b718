/* SPDX-License-Identifier: BSD-3-Clause */
/* Links fail, and tell their processes. */
#ifndef TQ_NET_LINK_FAIL_H
#define TQ_NET_LINK_FAIL_H

#include "net/datagram.h"
#include "net/objects.h"

/* Why a link fails. */
enum tq_fail {
	TQ_FAIL_GIVEN_UP, /* by a decision here; the sentence is "The connection to X was given up:
			     " and what the caller says */
	TQ_FAIL_KNOWN,    /* the caller's sentence says all */
	TQ_FAIL_LOST      /* its process may have died, which is found out before the report */
};

/*
 * Marks the link as failed, once, with a sentence for the log. Nothing more is posted towards its
 * process, which learns of the failure. What is under way ends later, in tq_links_tear_down(), so
 * the caller may go on with its links, lanes and requests.
 */
void tq_link_fail(struct tq_net *net, struct tq_link *link, enum tq_fail how, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

/* Handles the word of a process that the connection to it has failed there (CUT), or that it knows
 * of the failure here (CUT_ACK). */
void tq_on_cut(struct tq_net *net, const struct tq_oob_hdr *cut);
/* Stops telling the link's process that the link has failed here. */
void tq_link_cut_end(struct tq_net *net, struct tq_link *link);
/* Tells those again that have not answered. Brings *due, when that is to be done next, forward. */
void tq_cut_poll(struct tq_net *net, uint64_t now, uint64_t *due);

#endif
