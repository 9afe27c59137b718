/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the protocol without a network: one endpoint, which has a context with one peer. The
 * network takes the endpoint's messages at once, and notes the handles that an answer has to name.
 * A test calls the protocol as if messages had come from the peer.
 */
#ifndef TQ_UNIT_H
#define TQ_UNIT_H

#include "proto/core.h"
#include "unit_check.h"

#define UNIT_CTX 5u /* the context's id */

struct unit_handles {
	uint32_t *of;
	uint32_t n, room;
};

struct unit {
	struct tq_core core;
	struct tq_peer peer;
	struct tq_ctx *ctx;
	struct tq_params *params;
	struct tq_stats stats;
	int queues;           /* SRQs in use */
	void *posted;         /* the receive that was posted last to an SRQ */
	uint32_t switches;    /* SWITCHes to the peer */
	unsigned rts_flags;   /* of the last RTS with match bits to the peer */
	uint32_t fins;        /* FINs to the peer */
	bool registers;       /* memory can be registered */
	bool no_eager;        /* the peer takes only announcements */
	bool backpressured;   /* the peer was told to send only announcements */
	const char *given_up; /* the reason, if the peer was given up */
	/* Handles in messages to the peer. */
	struct unit_handles asks;   /* tuples that requested a queue */
	struct unit_handles rts;    /* sends that were announced */
	struct unit_handles offers; /* tuples whose queue was offered */
	uint32_t ask_after; /* messages until the tuple that was refused last may ask again */
};

extern struct unit unit;
extern const struct tq_net_limits unit_limits;

/* Starts the endpoint with default parameters, except the one that is named (NULL: none). */
void unit_start(const char *name, const char *value);
void unit_set(const char *name, const char *value);
/* Ends the endpoint. Returns true if nothing is left, also according to the counters. */
bool unit_stop(void);
/* Ends an endpoint that gave its peer up for having too much. Returns true if nothing is left. */
bool unit_stop_excess(void);

struct tq_ctx *unit_context(uint32_t id);
/* The length of a message that is announced by RTS. */
#define UNIT_LONG 8192
/* Sends a message in the context. Returns the value of tq_core_send(). */
int unit_send(int32_t tag, uint64_t len);
/* Posts a receive without a buffer in the context. Returns the value of tq_core_recv(). */
int unit_recv(int rank, int32_t tag, struct tq_req **req);
/* Hands a message of the peer to the endpoint. */
void unit_comes(const void *msg, size_t len);
/* Polls, then releases the requests that have ended. */
void unit_poll(void);

#endif
