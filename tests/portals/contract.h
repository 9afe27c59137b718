/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contract.h - a model of libtupleq for libportals, in one process: contexts with match bits, which
 * behave in all ways that tupleq/match.h allows. Process 0 is this one; the others are initiators,
 * whose messages arrive in the order in which they were sent, and at any time. The schedule chooses
 * the next step: an arrival, which the HCA may match if the entry allows that; the end of a
 * transfer; the end of an answer; the end of a recall.
 */
#ifndef PORTALS_CONTRACT_H
#define PORTALS_CONTRACT_H

#include <stdbool.h>

#include <tupleq/look_up.h>
#include <tupleq/match.h>

#include "schedule.h"

#define CONTRACT_PROCESSES 4
#define CONTRACT_REPLY     64 /* the number of the context of answers */

/* Functions by which the model reports events to the driver. */
struct contract_ops {
	/* The driver's message `id` arrives, and is matched when this returns. If `entry` isn't
	 * NULL the HCA has matched it. */
	void (*arrives)(unsigned id, const void *entry);
	/* The message's data are in memory, and done() was called. */
	void (*stored)(unsigned id);
	/* An answer has come to its process. */
	void (*answered)(int to, const void *header, const void *data, uint64_t len);
	/* tq_entry_remove() has taken an entry out of its list. */
	void (*removed)(void);
};

/* A message of an initiator. */
struct contract_message {
	unsigned id;
	int from;
	uint64_t bits;
	uint8_t header[TQ_HEADER_MAX];
	uint8_t data[64];
	uint64_t len;
	bool matched; /* TQ_SEND_MATCHED */
};

void contract_start(struct schedule *schedule, const struct contract_ops *ops);
/* Lets the endpoint find the other processes. */
void contract_introduce(void);
/* Sends a message to the context with that number, in the order of tq_ctx_add_bits(). */
void contract_send(unsigned ctx, const struct contract_message *message);
/* Returns the number of steps that are possible. */
unsigned contract_steps(void);
/* Takes one of these steps. */
void contract_step(unsigned which);
/* Returns true if the HCA may still match entries of the context, although it was closed. */
bool contract_is_recalling(unsigned ctx);
/* If true, tq_progress() takes steps. */
extern bool contract_blocking;
/* Expects that the endpoint is closed. */
void contract_stop(void);

#endif
