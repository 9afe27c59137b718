/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link is the network's side of a peer: what is known of its process, where its connections
 * stand, and what waits for it. link.c has the links' states, and finds links.
 */
#ifndef TQ_NET_LINK_H
#define TQ_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "net/adapter/address.h"
#include "net/adapter/objects.h"
#include "net/peers/oob.h"

/* ---- nodes ---- */

/* The processes behind one port of an HCA in one XRC domain, and what the lanes and links to them
 * share. */
struct tq_node {
	struct tq_node_key {
		union ibv_gid gid; /* of the port; LID-routed InfiniBand: subnet prefix and port
				      GUID as well */
		uint64_t domain;   /* its processes' tq_net.domain */
	} key;
	uint16_t lid;
	uint8_t mtu;             /* enum ibv_mtu */
	struct ibv_ah *ah;       /* for datagrams; NULL: not made yet */
	int ah_error;            /* errno of the last attempt */
	uint64_t ah_due;         /* ns: no attempt before */
	struct tq_lane *control; /* NULL: not asked for yet */
	struct tq_lane *bulk;    /* NULL: not asked for yet */
	struct tq_lane *hold;    /* list */
	uint32_t nhold;
	uint32_t nlinks, nlanes;     /* the node goes with the last of them */
	struct tq_rdma_op *bulk_ops; /* rdma.c: queue of operations of which not all is posted */
	uint64_t bulk_bytes;         /* rdma.c: posted, and not complete */
	bool bulk_busy;              /* in the list tq_net.bulk_busy */
	struct tq_node *bulk_busy_next, *bulk_busy_prev;
	bool hold_full;    /* a hold lane could not be made: no more are tried */
	bool no_bulk;      /* the bulk lane could not be made: the control lane stands in */
	UT_hash_handle hh; /* tq_net.nodes */
};

/* Finds the node of an address, or makes it. NULL: no memory. */
struct tq_node *tq_node_get(struct tq_net *net, const struct tq_address *address);
/* Frees the node if no link and no lane is left there. */
void tq_node_put(struct tq_net *net, struct tq_node *node);
/* Returns the address handle for datagrams to the node; NULL: its address can't be resolved, for
 * now. */
struct ibv_ah *tq_node_ah(struct tq_net *net, struct tq_node *node);

/* ---- a contact: the part of a link that is seldom needed ---- */

/* Facts about the process of a link that has failed; link_life.c. */
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
	struct tq_connect_request *asked[TQ_LANE_KINDS]; /* requests that wait for their answer */
	bool no_outbox;                                  /* its inbox can't be attached */
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

	/* Goodbyes: links.c. */
	bool owes_bye;              /* this process's goodbye has still to be said */
	struct tq_timer bye_timer;  /* says goodbye, and again */
	uint64_t leave_until;       /* ns: how long its answer is waited for */
	struct tq_timer gone_timer; /* armed by each goodbye of the link's process */
	bool owes_bye_ack;          /* the link's process waits for this one's BYE_ACK */

	/* Its failure: link_life.c, link_life.c. */
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

/*
 * Both processes of a link go through these states, each at its own time. A process that closes
 * says goodbye (BYE: CLOSING), because a CREDIT that comes after its end would break the sender's
 * lane. A process that answers the goodbye (BYE_ACK: QUIET) sends nothing more.
 *
 *   NEW ──▶ CONNECTING ──▶ UP ──▶ QUIET ──▶ CLOSED
 *                                └──▶ CLOSING ──┘
 *
 * NEW and CONNECTING may skip what is on the way to QUIET and CLOSING: no connection was needed. A
 * process that is known already is UP as soon as it asks. FAILED comes from everywhere, and is the
 * end.
 */
enum tq_link_state {
	TQ_LINK_NEW,
	TQ_LINK_CONNECTING, /* asks for a control lane to the other */
	TQ_LINK_UP,         /* its control lane is connected */
	TQ_LINK_QUIET,      /* has sent BYE_ACK, so sends nothing more, and stays */
	TQ_LINK_CLOSING,    /* has said goodbye, and may still send */
	TQ_LINK_CLOSED,     /* has said goodbye, and sent BYE_ACK */
	TQ_LINK_FAILED,     /* by tq_link_fail(); this process only */
	TQ_LINK_STATES
};

enum tq_link_end { TQ_HERE, TQ_THERE, TQ_LINK_ENDS };

#define TQ_CREDITS_MAX UINT8_MAX /* of a sender in a class: a header's byte returns them all */

struct tq_link {
	struct tq_peer *peer; /* the protocol's; NULL: not a peer yet */
	const char *name;     /* for sentences; of the caller of tq_link_add() */
	struct tq_node *node;
	enum tq_link_state state[TQ_LINK_ENDS];
	uint32_t ud_qpn, ud_qkey; /* where the process answers connection requests */
	uint64_t nonce; /* random: names the process's endpoint; another one in its next life */
	struct tq_contact *contact;
	struct tq_lane *ready[2]; /* the node's control and bulk lane, once the process has
				     confirmed them */

	/* This process as sender; given by the answer for the control lane. */
	uint32_t number_there; /* this process's number there; 0: not given yet */
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES]; /* bytes of the process's buffers */
	uint32_t credits[TQ_CLASSES];
	struct tq_outbox *outbox;                    /* outbox.c; NULL: there is none */
	struct tq_backlog *backlog;                  /* FIFO */
	uint64_t backlog_bytes;                      /* of messages with data in it */
	struct tq_backlog *backpressure;             /* the BACKPRESSURE in it; NULL: none */
	struct tq_link *waiting_next, *waiting_prev; /* tq_net.waiting */
	bool backpressured;                          /* the process asked for no more eager data */
	struct tq_put *puts;                         /* FIFO */
	uint32_t nputs;
	struct tq_link *putting_next, *putting_prev; /* tq_net.putting */

	/* This process as receiver. */
	struct tq_bank *bank;       /* control SRQs that the process uses; NULL: none */
	struct tq_inbox_ring *ring; /* ring that the process uses, in place of a bank; NULL: none */
	uint32_t number_here; /* the process's number here: index and check; given when the link is
				 made */
	uint32_t granted[TQ_CLASSES];                /* credits of the process, in all */
	uint8_t owed[TQ_CLASSES];                    /* of these, to return */
	struct tq_link *senders_next, *senders_prev; /* tq_net.senders */
	struct tq_link *owing_next;                  /* tq_net.owing */
	bool owing;                                  /* in that list */
	UT_hash_handle hh;                           /* tq_connections.links, by nonce */
};

static inline bool tq_link_has_failed(const struct tq_link *link)
{
	return link->state[TQ_HERE] == TQ_LINK_FAILED;
}

/* Returns true if the link's process has given this one the terms of its control lane. */
static inline bool tq_link_can_send(const struct tq_link *link)
{
	return link->number_there;
}

/* Returns true if this process has given the link's its terms: a bank or a ring. */
static inline bool tq_link_can_receive(const struct tq_link *link)
{
	return link->bank || link->ring;
}

/* Returns true if the process at that end has said goodbye. */
static inline bool tq_link_is_closing(const struct tq_link *link, enum tq_link_end end)
{
	return link->state[end] == TQ_LINK_CLOSING || link->state[end] == TQ_LINK_CLOSED;
}

/* Returns true if the process at that end has sent BYE_ACK: it sends nothing more. */
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

/* Each takes note of an event at one end: the process there asks for its control lane; its lane is
 * connected; the process says goodbye; the process sends BYE_ACK. A link that has
 * failed stays so. */
void tq_link_connect(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
void tq_link_set_up(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
void tq_link_close(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
void tq_link_set_quiet(struct tq_net *net, struct tq_link *link, enum tq_link_end end);
/* Takes note that the link has failed here. The rest of that is tq_link_fail(). */
void tq_link_mark_failed(struct tq_net *net, struct tq_link *link);
/* Returns true if sends are under way that end only by what the link's process does. */
bool tq_link_waits(const struct tq_link *link);

/* Returns the name of the link's process, for sentences. */
const char *tq_link_name(const struct tq_link *link);
/* Finds a link by its process's nonce. NULL: none. */
struct tq_link *tq_link_by_nonce(struct tq_net *net, uint64_t nonce);
/* Finds the link whose process has this number here (struct tq_msg_hdr's conn). NULL: none. */
struct tq_link *tq_link_find(struct tq_net *net, uint32_t number);

#endif
