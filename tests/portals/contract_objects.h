/* SPDX-License-Identifier: BSD-3-Clause */
/* contract_objects.h - the objects of the model of libtupleq (contract.h). struct tq_peer, tq_ctx
 * and tq_ep are the model's own definitions of the opaque types in tupleq.h. */
#ifndef PORTALS_CONTRACT_OBJECTS_H
#define PORTALS_CONTRACT_OBJECTS_H

#include <utlist.h>

#include "contract.h"

struct tq_peer {
	int process;
};

struct entry {
	tq_entry_id id;
	int rank;
	uint64_t bits, ignore;
	struct tq_buf buf;
	bool queue;
	void *user;
	struct entry *next, *prev;
};

/* A message that no entry has taken, with its data in the place that unexpected() has named. */
struct waiting {
	struct contract_message message;
	void *user;
	struct waiting *next, *prev;
};

/* A transfer of a message's data to memory. If `taken` is set, the data are there already and only
 * the report is outstanding. */
struct transfer {
	struct tq_ctx *ctx;
	struct contract_message message;
	struct tq_buf buf;
	void *user;
	/* The result of unexpected() for the message; NULL: the message was expected. */
	void *taken;
	tq_entry_id queue_id; /* entry that the HCA matched; 0: none */
	struct transfer *next, *prev;
};

struct answer {
	int to;
	uint8_t header[TQ_HEADER_MAX];
	struct tq_buf buf;
	void *user;
	struct answer *next, *prev;
};

struct arrival {
	unsigned ctx;
	struct contract_message message;
	struct arrival *next, *prev;
};

struct tq_ctx {
	unsigned number;
	const struct tq_match_ops *ops;
	void *arg;
	size_t header_len;
	bool closed, recalling;
	int rank_of[CONTRACT_PROCESSES]; /* -1: not joined */
	int process_of[CONTRACT_PROCESSES];
	int nranks;
	struct entry *entries;
	struct waiting *waiting;
};

struct tq_ep {
	struct tq_job job;
	tq_found *found;
	void *found_arg;
	struct tq_ctx *ctxs[CONTRACT_REPLY + 1];
	unsigned nctxs, ended_ctxs;
	struct tq_peer peers[CONTRACT_PROCESSES];
	struct arrival *arrivals[CONTRACT_PROCESSES];
	struct transfer *transfers;
	struct answer *answers;
	tq_entry_id next_id;
};

struct contract_state {
	struct schedule *schedule;
	const struct contract_ops *ops;
	struct tq_ep *ep;
	unsigned idle_calls; /* calls of tq_progress() in a row without a step */
};
extern struct contract_state contract;

#endif
