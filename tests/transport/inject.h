/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures at a chosen point of a test of libtupleq: this process is killed, or one of its
 * connections breaks, when it posts work of a certain kind for the n-th time. inject.c stands
 * between the library and its verbs: in front of ibv_modify_qp() and of events, and in the
 * context's post_send and poll_cq. So it works with any adapter. Messages through rings are seen by
 * the library's trace; only a kill can meet those.
 */
#ifndef INJECT_H
#define INJECT_H

#include <stdbool.h>

struct tq_ep;

/* Kinds of work that is posted. */
enum inject_what {
	INJECT_POST,     /* anything */
	INJECT_DATAGRAM, /* by UD, of type `type`: enum tq_oob_type */
	INJECT_CONTROL,  /* a message of that enum tq_msg_type on the control lane, or to a ring */
	INJECT_DIRECT,   /* a message to a tuple queue, on a lane of that enum tq_lane_kind */
	INJECT_READ,     /* an RDMA read */
	INJECT_WRITE     /* an RDMA write that has data */
};

enum inject_how {
	INJECT_KILL_BEFORE,  /* SIGKILL, instead of the post */
	INJECT_KILL_AFTER,   /* SIGKILL after the post */
	INJECT_BREAK,        /* then the QP of the post goes to ERR */
	INJECT_BREAK_TARGET, /* then the TGT QP of the other process for that kind of lane goes to
				ERR */
	INJECT_POLL_FAILS,   /* from then on no completion queue can be polled */
	INJECT_CQ_ERROR      /* then the CQ of its send queue is in error: an event says so, and no
				completion comes */
};

struct inject_point {
	enum inject_what what;
	unsigned type;
	unsigned n; /* the number of the post among those of its kind, from 1 */
	enum inject_how how;
	unsigned kind; /* INJECT_BREAK_TARGET: enum tq_lane_kind */
};

/* Makes the memory that the processes share. A test calls this before it forks them. */
void inject_init(void);
/* Sets the point and the failure, in one of a test's processes. */
void inject_set(const struct inject_point *point);
/* Has the messages of the endpoint through rings count as INJECT_CONTROL, too. */
void inject_rings(struct tq_ep *ep);
/* Returns true if the point was reached. */
bool inject_reached(void);

/* Makes the destruction of an SRQ take so long, and messages come meanwhile. */
void inject_slow_srqs(unsigned us);

/* Has these percentages of the datagrams lost, doubled or late. */
void inject_datagrams(unsigned seed, unsigned lost, unsigned doubled, unsigned late);

#endif
