/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end.h - the verbs objects of a process, as TupleQ uses them: an XRC domain that it shares with
 * other processes, an SRQ that receives, and a connection. A function that fails returns false and
 * leaves a sentence in `why` and an errno in `error`.
 */
#ifndef TUPLEQ_CHECK_END_H
#define TUPLEQ_CHECK_END_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port.h"

/* Receives that can be posted, and messages on their way: each adapter that works has room for so
 * many. */
#define END_SLOTS 16u
#define END_SLOT  4096u /* bytes of the longest message */

struct end {
	const struct port *port;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_comp_channel *channel; /* of sent */
	struct ibv_cq *sent, *received;
	struct ibv_mr *memory, *null_mr;
	struct ibv_qp *initiator; /* sends leave here */
	struct ibv_qp *target;    /* they arrive here, in the same adapter */
	struct ibv_srq *srq;
	uint32_t srqn;
	uint8_t *out, *in;   /* END_SLOTS of END_SLOT bytes each */
	uint8_t *rest;       /* END_SLOT bytes, for the ends of messages if there is no null MR */
	uint8_t rnr_timer;   /* code of the pause before a message is sent again */
	uint32_t max_inline; /* of an initiator */
	struct ibv_ah_attr
		path; /* of connections: to the port itself, until the caller changes it */
	enum ibv_mtu mtu;
	int error;
	char why[200];
};

/* Makes all but the connection. xrc_file is the open file that names the domain. An end that could
 * not be opened is to be closed, too. */
bool end_open(struct end *end, const struct port *port, int xrc_file);
void end_close(struct end *end);

/* Makes a connection of the adapter to itself. */
bool end_connect(struct end *end);
/* The halves of end_connect(): make both queue pairs, and connect them to those of any end, by the
 * end's path. */
bool end_make(struct end *end);
bool end_connect_to(struct end *end, uint32_t initiator, uint32_t target);
void end_disconnect(struct end *end);

/* Makes an XRC queue pair of either side. Returns NULL with errno. */
struct ibv_qp *end_make_initiator(struct end *end);

/* Brings a queue pair to a state, on its way to a connection. Return an errno. */
int end_to_init(const struct end *end, struct ibv_qp *qp);
int end_to_rtr(const struct end *end, struct ibv_qp *qp, uint32_t peer);
int end_to_rts(const struct end *end, struct ibv_qp *qp);

/* Opens a target QP that another process of the domain has made. */
bool end_open_target(struct end *end, uint32_t qpn);

/* Makes an SRQ of this depth with the end's CQ. Returns NULL with a sentence. */
struct ibv_srq *end_new_srq(struct end *end, uint32_t depth, uint32_t *srqn);

/* Makes the SRQ, or makes it anew. */
bool end_make_srq(struct end *end);

/* Posts a receive into slot i: `len` bytes, and if `whole`, memory behind them that takes the rest
 * of a message of END_SLOT bytes. */
bool end_receive(struct end *end, unsigned i, uint32_t len, bool whole);

/* A send, a read, a write or an atomic operation on another end. */
struct end_work {
	enum ibv_wr_opcode opcode;
	unsigned slot; /* of `out` */
	uint32_t len;
	uint32_t srqn; /* of the other end */
	uint64_t addr; /* there */
	uint32_t rkey;
	uint64_t compare, value;
};

/* Posts it, signalled, and a short send inline. */
bool end_post(struct end *end, const struct end_work *work);

/* Waits for a completion of whatever status. */
bool end_poll(struct end *end, struct ibv_cq *cq, struct ibv_wc *wc);

/* Waits for n completions, which must be successes. */
bool end_wait_sent(struct end *end, unsigned n);
/* Waits for the completion of one receive, which has to be good. */
bool end_wait_received(struct end *end);

/* Returns true if no send completes within a time that is long for an adapter. */
bool end_is_waiting(struct end *end);

/* Fills memory with a pattern, and returns true if it has that pattern. */
void end_fill(uint8_t *memory, size_t len, unsigned seed);
bool end_has(const uint8_t *memory, size_t len, unsigned seed);

/* Leaves a sentence, and returns false. */
bool end_fail(struct end *end, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
