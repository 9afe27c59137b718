/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: what lane_connect.c (lanes and requests for them), fail.c (failures), lane_qp.c (the
 * lanes' INI QPs), target.c (TGT QPs for others' lanes), link.c (links), node.c (nodes), leave.c
 * (goodbyes) and connections.c (opening, polling, closing) share.
 *
 * Each connection is simplex. Who wants a lane makes an INI QP and asks a process of the node for a
 * TGT QP; each further process of that node is asked to open that TGT QP, and has confirmed the
 * lane when it answers.
 */
#ifndef TQ_NET_CONNECTIONS_H
#define TQ_NET_CONNECTIONS_H

#include <errno.h>

#include "base/handles.h"
#include "net/oob.h"

#define TQ_LANE_KINDS 3

/* A request that waits for its answer: `link` is asked to make, or to open, the TGT QP of `lane`.
 */
struct tq_request {
	uint64_t txid;
	struct tq_link *link;
	struct tq_lane *lane;
	bool sent;        /* once at least; until the lane is READY, only the first of its list */
	uint64_t due;     /* ns: when to ask again */
	uint64_t backoff; /* ns */
	uint64_t heard;   /* ns: of the last sign of life, or of the start */
	uint64_t silent;  /* ns: without one, the times that it was sent before */
	struct tq_request *next, *prev; /* of its lane */
	UT_hash_handle hh;              /* by txid */
};

/* The state of knowledge of the process of a connection that has failed. */
enum tq_fate {
	TQ_FATE_UNASKED, /* the cause isn't there */
	TQ_FATE_INQUIRED,
	TQ_FATE_DIED,
	TQ_FATE_LIVES,
	TQ_FATE_UNKNOWN
};

/* Connection requests by a process that is not a peer yet: their order doesn't matter, and what
 * doesn't fit is asked again. */
#define TQ_KEPT_REQUESTS 4

struct tq_contact {
	struct tq_address address;
	struct tq_request *asked[TQ_LANE_KINDS]; /* what waits for its answer */
	struct tq_oob_req kept[TQ_KEPT_REQUESTS];
	unsigned nkept;
	uint64_t newest[TQ_LANE_KINDS];   /* txid of its last request; */
	bool has_asked[TQ_LANE_KINDS];    /* there was one */
	uint32_t ntargets[TQ_LANE_KINDS]; /* TGT QPs that are open for it */
	bool no_hold;                     /* it takes no more hold lanes */
	bool no_bulk;                     /* it takes no bulk lane: the control lane stands in */
	bool owes_bye;                    /* goodbye: it has still to be said; */
	uint64_t bye_due;                 /* then, when it is said again, */
	uint64_t leave_until;             /* and how long its answer is waited for */
	uint64_t bye_heard;               /* ns: its last one */
	bool owed_ack;                    /* it waits for our promise */
	char *why;                        /* it has failed; the protocol is to be told */
	bool refused;                     /* as what was sent to it was refused, */
	bool denied;                      /* because that memory isn't registered there */
	bool watched;                     /* its mark in the XRC domain's file was seen */
	enum tq_fate fate;                /* fate.c: why it failed, and for how long that is */
	uint64_t fate_due, fate_until;    /* inquired; when others are asked next, */
	uint32_t mates_asked;             /* and how many have been */
	uint64_t culprit;   /* nonce of the link whose failure it shares; 0: its own */
	bool reported;      /* the user has been told, with that one's */
	bool blamed;        /* another has cut its connection to us because of this one's */
	uint64_t cut_due;   /* it has failed, and its process may not know: when to say so */
	uint64_t cut_until; /* next, and for how long; 0: it knows */
	uint64_t cut_backoff;
	struct tq_link *next_cut;  /* list of those */
	bool wants_hold;           /* in the list of those that found no free hold lane */
	struct tq_link *next_hold; /* that list */
	/* List of those that have failed and the protocol doesn't know. */
	struct tq_link *next_failed;
};

/* A TGT QP of somebody else's lane, and the answer that was given for it. */
struct tq_target {
	struct tq_target_key {
		uint64_t nonce, txid;
	} key;
	struct tq_link *link;
	enum tq_lane_kind kind;
	struct ibv_qp *qp;
	struct tq_oob_rep rep;
	UT_hash_handle hh;
};

struct tq_connections {
	struct tq_address address;
	uint64_t nonce;
	uint64_t txid;               /* of the last request */
	uint64_t due;                /* no request is due before */
	struct tq_link *links;       /* hash by nonce */
	uint32_t nunnamed;           /* of these, not peers */
	struct tq_handles numbers;   /* links by their number here */
	struct tq_request *requests; /* hash by txid */
	struct tq_target *targets;   /* hash by key */
	struct tq_lane *failed;      /* list: lanes that go when their work is flushed */
	struct tq_link *failing;     /* list: marked by tq_link_fail(), not torn down yet */
	struct tq_link *broken;      /* list: torn down, and not reported yet */
	struct tq_link *wants_hold;  /* list */
	struct tq_link *cut;         /* list */
	bool hold_freed;             /* a hold lane became free: they are to be told */
	uint32_t nacks_owed;
	bool leaving; /* some goodbye is not answered; */
	uint64_t bye_due;
	bool others_leave; /* some process has said goodbye, and may still be there; */
	uint64_t gone_due;
	uint64_t check_due; /* keepalive */
	uint32_t polls;
};

/* Does the error (positive) say that there is no more of something? */
static inline bool tq_is_limit(int error)
{
	return error == ENOMEM || error == ENOSPC || error == EAGAIN || error == EMFILE;
}

#define TQ_MS UINT64_C(1000000) /* tq_now() counts ns */
uint64_t tq_now(void);
/* The name of the kind of lane, for sentences. */
const char *tq_lane_name(const struct tq_lane *lane);

/* ---- lane_connect.c ---- */
void tq_on_reply(struct tq_net *net, const struct tq_oob_rep *rep);
/* Asks (again). */
void tq_request_send(struct tq_net *net, struct tq_request *rq);
/* It is due again. */
void tq_request_again(struct tq_net *net, struct tq_request *rq);
/* Takes the lane away from everybody; it goes when its work is flushed. Requests for it are made
 * anew. */
void tq_lane_retire(struct tq_net *net, struct tq_lane *lane);
/* Forgets what the link has asked for. */
void tq_requests_drop(struct tq_net *net, struct tq_link *link);

/* ---- fail.c ---- */
/* The lane can't be used any more; nor can the processes that it was used towards be reached. The
 * failed work was for `link`; NULL: unknown. */
void tq_lane_fail(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		  const char *cause);
/* A process says that the connection to it has failed there, or that it knows of ours. */
void tq_on_cut(struct tq_net *net, const struct tq_oob_hdr *h);
/* Tells the link's process that the link has failed here, until it knows or connect_timeout is
 * over.
 */
void tq_link_cut(struct tq_net *net, struct tq_link *link);
void tq_link_cut_end(struct tq_net *net, struct tq_link *link);
/* Tells those again that have not answered; *due: no later than the next. */
void tq_cut_poll(struct tq_net *net, uint64_t now, uint64_t *due);

/* ---- fate.c: has a process whose connection failed died? ---- */
/* To be called when the link is made: whether its process can be watched from here. */
void tq_fate_watch(const struct tq_net *net, struct tq_link *link);
/* Returns true if the process is known to have ended; false: it lives, or nobody here can tell. */
bool tq_fate_has_died(const struct tq_net *net, const struct tq_link *link);
/* The link has failed, and that may be because its process has died. */
void tq_fate_inquire(struct tq_link *link, uint64_t now);
/* An answer, if one is waited for. */
void tq_fate_is(struct tq_link *link, enum tq_fate fate);
/* Returns true while the answer is waited for; asks those that may know. */
bool tq_fate_is_open(struct tq_net *net, struct tq_link *link, uint64_t now);
/* When to look again. */
uint64_t tq_fate_due(const struct tq_link *link, uint64_t now);
/* TQ_OOB_ASK, TQ_OOB_TOLD. */
void tq_on_fate(struct tq_net *net, const struct tq_oob_hdr *h);
/* The end of the sentence for the log: what to look at. "": nothing. */
const char *tq_fate_text(const struct tq_link *link);

/* ---- leave.c ---- */
/* Handles a goodbye, or the promise that answers ours. */
void tq_on_bye(struct tq_net *net, const struct tq_oob_hdr *h);
/* Returns true if sends are under way that end only by what the link's process does. */
bool tq_link_waits(const struct tq_link *link);
/* Sends the promises that are due, when all that was sent has arrived. */
void tq_acks_send(struct tq_net *net);
/* Fails links whose processes said goodbye and are gone. */
void tq_gone_poll(struct tq_net *net, uint64_t now);
/* Sends goodbyes that are due, again until they are answered. */
void tq_byes_poll(struct tq_net *net, uint64_t now);

/* ---- connections.c ---- */
/* To the log: why the link has failed. */
void tq_link_say_why(struct tq_net *net, const struct tq_link *link);

/* ---- lane_qp.c ---- */
/* Makes an INI QP, in INIT. -errno. */
int tq_lane_make(struct tq_net *net, struct tq_node *node, enum tq_lane_kind kind,
		 struct tq_lane **lane);
/* Connects it to the TGT QP, which takes `rd_atomic` reads. */
int tq_lane_connect(struct tq_net *net, struct tq_lane *lane, uint32_t tgt_qpn, uint8_t rd_atomic);
/* Puts the lane into TQ_LANE_FAILED, so that its work is flushed. */
void tq_lane_stop(struct tq_net *net, struct tq_lane *lane);
/* Nothing on it is waited for. */
void tq_lane_destroy(struct tq_net *net, struct tq_lane *lane);
bool tq_lane_confirmed(const struct tq_lane *lane, const struct tq_link *link);
int tq_lane_confirm(struct tq_lane *lane, struct tq_link *link);
void tq_lane_unconfirm(struct tq_lane *lane, const struct tq_link *link);
/* RDMA reads that one of our INI QPs has under way at most. */
uint8_t tq_lane_rd_atomic(const struct tq_net *net);

/* ---- target.c ---- */
void tq_on_request(struct tq_net *net, const struct tq_oob_req *req);
/* The link has become a peer: its kept requests are answered. */
void tq_targets_named(struct tq_net *net, struct tq_link *link);
void tq_targets_drop(struct tq_net *net, const struct tq_link *link); /* NULL: all */

/* ---- node.c ---- */
/* What its datagrams go by; NULL: its address can't be resolved, for now. */
struct ibv_ah *tq_node_ah(struct tq_net *net, struct tq_node *node);
void tq_node_retire_lanes(struct tq_net *net, struct tq_node *node);
/* Finds the node of an address, or makes it. NULL: no memory. */
struct tq_node *tq_node_get(struct tq_net *net, const struct tq_address *a);
/* Frees the node if no link and no lane is left there. */
void tq_node_put(struct tq_net *net, struct tq_node *node);

#endif
