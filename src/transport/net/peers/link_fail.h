/* SPDX-License-Identifier: BSD-3-Clause */
/* Links fail, and tell their processes. */
#ifndef TQ_NET_LINK_FAIL_H
#define TQ_NET_LINK_FAIL_H

#include "net/adapter/objects.h"
#include "net/peers/datagram.h"

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
