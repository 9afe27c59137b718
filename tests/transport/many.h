/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several endpoints of libtupleq in one process. One thread polls each when the case wants it to. A
 * case runs in a process of its own, which ends without closing the endpoints, so that held
 * messages may be left.
 *
 * A program lists its cases in many_cases, and runs those that its arguments name: the case of that
 * name, or all cases whose names contain the words.
 */
#ifndef MANY_H
#define MANY_H

#include <time.h>

#include "../expect.h"
#include "ep/objects.h"
#include "net/adapter/ring.h"

#define MANY_MOST 20
#define MANY_TAG  5

#define MANY_RING_SIZE 65536u /* the default of ring_size */
#define MANY_RING_WORD 8      /* bytes before a message in a ring, which begin with its length */

struct many_op {
	bool ended;
	struct tq_status status;
	struct tq_req *req;
};

struct many_case {
	const char *name;
	void (*run)(void);
};

/* The program's cases, up to the first one without a name. */
extern const struct many_case many_cases[];

extern struct tq_ep *many_eps[MANY_MOST];
extern struct tq_peer *many_peers[MANY_MOST][MANY_MOST]; /* [i][j]: endpoint j, as a peer of i */
extern int many_neps;
extern time_t many_deadline; /* the seconds that a wait may take; $MANY_DEADLINE sets them */
extern int many_errors;      /* errors that were logged */
extern char many_error[512]; /* the last of them */
/* Called for each request that ends, unless NULL. */
extern void (*many_completed)(struct many_op *op);

/*
 * Most cases begin with n endpoints that know one another, and a context of all of them: each on a
 * node of its own (that is, in a job of its own), all on one node, or on the nodes that are named.
 * The parameters are "NAME=VALUE"s, up to NULL. An endpoint has no service thread unless a
 * parameter says so. With $TEST_INTRANODE, a value of the parameter intranode, all endpoints are on
 * one node. Without it the value is hca, as most cases are about the adapter.
 */
void many_start_apart(int n, const char *const *params, struct tq_ctx **ctx);
void many_start_together(int n, const char *const *params, struct tq_ctx **ctx);
void many_start_on(int n, const int *nodes, const char *const *params, struct tq_ctx **ctx);

/* Ends the case as skipped, for that reason in printf form. */
void many_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Skips a case that is about control lanes, or about two nodes, if $TEST_INTRANODE is set: there
 * are neither. */
void many_needs_lanes(void);

/* As many_start_apart(), for two endpoints; then the second sends a message to the first. Without
 * params the parameters have their defaults. */
void many_start_pair(const char *const *params, struct tq_ctx **ctx);
/* The steps of many_start_apart() and its siblings. many_open() has a node for each endpoint, or
 * one for all. */
void many_open(int n, bool nodes, const char *const *params);
void many_open_on(int n, const int *nodes, const char *const *params);
/* Opens one more endpoint on that node, and returns its number. */
int many_open_one(int node, const char *const *params);
/* Adds endpoint j as a peer of i. */
void many_know(int i, int j);
void many_know_all(void);
/* Makes a context of the first n endpoints. */
void many_context(uint32_t id, int n, struct tq_ctx **ctx);
/* Makes a context of n endpoints, in the order of their ranks. */
void many_context_of(uint32_t id, int n, const int *who, struct tq_ctx **ctx);
/* Makes, at endpoint ep alone, a context of the first n endpoints. */
void many_context_at(int ep, uint32_t id, int n, struct tq_ctx **ctx);
uint64_t many_counter(int ep, const char *name);
/* Returns the highest value that a level has had. */
uint64_t many_high(int ep, const char *name);
/* Check that a level is not above the limit: now, at its highest, or after progress. */
void many_is_within(int ep, const char *name, uint64_t limit);
void many_was_within(int ep, const char *name, uint64_t limit);
void many_falls(int ep, const char *name, uint64_t limit);

/* Repeats a step until the condition holds. Fails after many_deadline seconds. */
#define MANY_UNTIL(condition, step)                                                                \
	for (time_t many_end = time(NULL) + many_deadline; !(condition) && time(NULL) < many_end;) \
	step

/* Waits until no endpoint's service thread has woken up for that many milliseconds. Fails after
 * many_deadline seconds. */
void many_sleep(int ms);
/* Makes progress at all endpoints `rounds` times. */
void many_spin(int rounds);
/* Makes progress until the operation has ended. Returns false if it doesn't end in time. */
bool many_comes(const struct many_op *op);
void many_send(struct tq_ctx *ctx, int rank, int32_t tag, const char *text, unsigned flags,
	       struct many_op *op);
void many_recv(struct tq_ctx *ctx, int rank, int32_t tag, char data[64], struct many_op *op);
void many_recv_long(struct tq_ctx *ctx, int rank, int32_t tag, char *data, size_t size,
		    struct many_op *op);
/* Passes a message whose receive is posted in time. */
void many_pass(struct tq_ctx *from, struct tq_ctx *to, int from_rank, int to_rank);

/* Attaches the inbox of an endpoint. */
struct tq_rings *many_inbox(int ep, size_t *len);
/* Returns a ring of an inbox that many_inbox() has attached. */
struct tq_ring *many_ring(struct tq_rings *rings, uint32_t number);

/* Take all free entries of endpoint 0's send completion queue, and give them back. */
uint32_t many_take_slots(void);
void many_give_slots(uint32_t taken);

#endif
