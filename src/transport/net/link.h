/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link is the network's side of a peer: what is known of its process, where its connections
 * stand, and what waits for it. link.c makes, finds and frees links, and has their states.
 */
#ifndef TQ_NET_LINK_H
#define TQ_NET_LINK_H

#include "net/objects.h"

struct tq_address;

/*
 * Both processes of a link go through these states, each at its own time. A process that closes
 * says goodbye (CLOSING), as late CREDIT would break the other's lane; the answer to that is a
 * promise to send nothing more.
 *
 *   NEW ──▶ UP ──▶ QUIET ──▶ CLOSED       NEW may skip UP: no connection was needed
 *             └──▶ CLOSING ──┘            FAILED comes from everywhere, and is the end
 */
enum tq_link_state {
	TQ_LINK_NEW,
	TQ_LINK_UP,      /* its control lane is connected */
	TQ_LINK_QUIET,   /* has promised to send nothing more, and stays */
	TQ_LINK_CLOSING, /* has said goodbye, and may still send */
	TQ_LINK_CLOSED,  /* has said goodbye, and promised to send nothing more */
	TQ_LINK_FAILED,  /* by tq_link_fail(); this process only */
	TQ_LINK_STATES
};

enum tq_link_end { TQ_HERE, TQ_THERE, TQ_LINK_ENDS };

struct tq_link {
	struct tq_peer *peer;
	const char *name; /* for sentences; the caller's of tq_link_add() */
	struct tq_node *node;
	enum tq_link_state state[TQ_LINK_ENDS];
	uint32_t ud_qpn, ud_qkey; /* where it answers connection requests */
	uint64_t nonce; /* a random number of its endpoint's: names it, and tells its lives apart */
	struct tq_contact *contact; /* connections.h: its address, what waits */
	struct tq_lane *ready[2]; /* its node's control and bulk lane, once it has confirmed them */

	/* As sender to it; given by its answer for the control lane. */
	uint32_t conn; /* our number there; 0: not connected */
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES]; /* bytes of its buffers */
	uint32_t credits[TQ_CLASSES];
	struct tq_backlog *backlog;                  /* FIFO */
	uint64_t backlog_bytes;                      /* of its messages with data */
	struct tq_backlog *backpressure;             /* of these, the BACKPRESSURE; NULL: none */
	struct tq_link *waiting_next, *waiting_prev; /* control.c: links with a backlog */
	bool backpressured;                          /* it asked for no more eager data */
	struct tq_put *puts;                         /* FIFO */
	uint32_t nputs;
	struct tq_link *puts_next, *puts_prev; /* put.c: links with puts that wait */

	/* As receiver from it. */
	struct tq_bank *bank; /* control SRQs that it uses; NULL: it has not connected */
	uint32_t here;        /* its number here: index and check; given when the link is made */
	uint32_t granted[TQ_CLASSES];          /* credits that it has in all */
	uint32_t owed[TQ_CLASSES];             /* of these, to return */
	struct tq_link *from_next, *from_prev; /* credit.c: links that have a bank */
	struct tq_link *next_owing;            /* links to which CREDIT may have to be sent */
	bool owing;
	UT_hash_handle hh; /* by nonce */
};

static inline bool tq_link_has_failed(const struct tq_link *link)
{
	return link->state[TQ_HERE] == TQ_LINK_FAILED;
}

/* Returns true if this process knows what it needs to send to the link's. */
static inline bool tq_link_is_connected(const struct tq_link *link)
{
	return link->conn;
}

/* Returns true if the process at that end has said goodbye. */
static inline bool tq_link_is_closing(const struct tq_link *link, enum tq_link_end end)
{
	return link->state[end] == TQ_LINK_CLOSING || link->state[end] == TQ_LINK_CLOSED;
}

/* Returns true if the process at that end has promised to send nothing more. */
static inline bool tq_link_is_quiet(const struct tq_link *link, enum tq_link_end end)
{
	return link->state[end] == TQ_LINK_QUIET || link->state[end] == TQ_LINK_CLOSED;
}

/* Returns true if messages may be sent to the link's process, which will take them. */
static inline bool tq_link_is_open(const struct tq_link *link)
{
	return !tq_link_has_failed(link) && !tq_link_is_closing(link, TQ_THERE) &&
	       !tq_link_is_quiet(link, TQ_HERE);
}

/* Each takes note of an event at one end: its control lane is connected; it says goodbye; it
 * promises to send nothing more. A link that has failed stays so. */
void tq_link_up(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
void tq_link_close(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
void tq_link_quiet(struct tq_net *net, struct tq_link *link, enum tq_link_end end);

/* Why a link fails. */
enum tq_fail {
	TQ_FAIL_GIVEN_UP, /* by a decision here; the sentence is "The connection to X was given up:
			     " and what the caller says */
	TQ_FAIL_KNOWN,    /* the caller's sentence says all */
	TQ_FAIL_LOST      /* its process may have died, which is found out before the report */
};
/*
 * Marks the link as failed, once, with a sentence for the log. Nothing more is posted towards its
 * process, which learns of it. What is under way ends later, in tq_connections_report(), so the
 * caller may go on with its links, lanes and requests.
 */
void tq_link_fail(struct tq_net *net, struct tq_link *link, enum tq_fail how, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* Ends what the links that tq_link_fail() marked have under way here. To be called where nobody
 * iterates over lanes or requests. */
void tq_links_tear_down(struct tq_net *net);
/* Returns the name of the link's process, for sentences. */
const char *tq_link_name(const struct tq_link *link);
struct tq_link *tq_link_by_nonce(struct tq_net *net, uint64_t nonce);
/* The link of a process that asked before it was a peer; NULL: its address is no good, or there are
 * too many. */
struct tq_link *tq_link_unnamed(struct tq_net *net, const struct tq_address *address);
void tq_links_free(struct tq_net *net);
int tq_link_add(struct tq_net *net, const void *address, size_t len, struct tq_peer *peer,
		const char *name, struct tq_link **link);
/* The peer that was added with that address; NULL: none. */
struct tq_peer *tq_link_peer(struct tq_net *net, const void *address, size_t len);
void tq_link_remove(struct tq_net *net, struct tq_link *link);
/* The link that has this number here (struct tq_msg_hdr's conn); NULL: none. */
struct tq_link *tq_link_find(struct tq_net *net, uint32_t conn);

#endif
