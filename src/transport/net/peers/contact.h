/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a link that is seldom needed: its process's address, requests, and its end. */
#ifndef TQ_NET_CONTACT_H
#define TQ_NET_CONTACT_H

#include "net/peers/datagram.h"

/* Facts about the process of a link that has failed; fate.c. */
enum tq_fate {
	TQ_FATE_UNASKED, /* no inquiry was started */
	TQ_FATE_INQUIRED,
	TQ_FATE_DIED,
	TQ_FATE_LIVES,
	TQ_FATE_UNKNOWN
};

/* This process's access to the memory of the link's process. */
enum tq_memory { TQ_MEMORY_UNKNOWN, TQ_MEMORY_READABLE, TQ_MEMORY_REFUSED };

/* The most connection requests that are kept of a process that is not a peer yet. Their order
 * doesn't matter, and one that doesn't fit comes again. */
#define TQ_KEPT_REQUESTS 4

struct tq_contact {
	struct tq_address address;

	/* Lanes to it. */
	struct tq_request *asked[TQ_LANE_KINDS]; /* requests that wait for their answer */
	bool no_outbox;                          /* its inbox can't be attached */
	/* The lane on which connections.c has checked it last, and the number of the WQE. */
	const struct tq_lane *checked;
	uint32_t check_wqe;
	/* Its memory: peer_memory.c. */
	enum tq_memory memory;
	pid_t pid;
	uint64_t proof;  /* where in its memory its nonce is */
	bool no_hold;    /* it takes no more hold lanes */
	bool no_bulk;    /* it takes no bulk lane: the control lane stands in */
	bool wants_hold; /* in the list tq_connections.wants_hold */
	struct tq_link *wants_hold_next;

	/* Lanes from it: target.c. */
	struct tq_oob_req kept[TQ_KEPT_REQUESTS];
	unsigned nkept;
	bool has_asked[TQ_LANE_KINDS];    /* the process has asked for such a lane */
	uint64_t newest[TQ_LANE_KINDS];   /* txid of its last request for one */
	uint32_t ntargets[TQ_LANE_KINDS]; /* TGT QPs that are open for it */

	/* Goodbyes: link_leave.c. */
	bool owes_bye;              /* this process's goodbye has still to be said */
	struct tq_timer bye_timer;  /* says goodbye, and again */
	uint64_t leave_until;       /* ns: how long its answer is waited for */
	struct tq_timer gone_timer; /* armed by each goodbye of the link's process */
	bool owes_bye_ack;          /* the link's process waits for this one's BYE_ACK */

	/* Its failure: link_fail.c, fate.c. */
	char *why;    /* the sentence for the log */
	bool refused; /* what was sent to it was refused */
	bool denied;  /* refused because that memory isn't registered there */
	bool watched; /* its mark in the XRC domain's file was seen */
	enum tq_fate fate;
	struct tq_timer fate_timer; /* looks, and asks mates */
	uint64_t fate_until;        /* ns: the end of the inquiry */
	uint32_t mates_asked;       /* mates asked so far in this round */
	uint64_t culprit;           /* nonce of the link whose failure it shares; 0: its own */
	bool logged;                /* the log has said why */
	/* The user knows of the failure: by the sentence on the culprit or on the adapter, or
	 * because the user has removed the peer. So the log says why as no error. */
	bool user_knows;
	bool blamed; /* another process has cut its connection because of this one's */
	struct tq_timer cut_timer;   /* tells its process again that the link has failed */
	uint64_t cut_until;          /* ns: CUT is repeated until then; 0: it isn't */
	uint64_t cut_backoff;        /* ns */
	struct tq_link *failed_next; /* tq_connections.failing, then .broken */
};

#endif
