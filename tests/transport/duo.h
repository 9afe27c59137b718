/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of libtupleq with two processes on two nodes: each test forks them anew, and they exchange
 * addresses through a socket. Prints "ok NAME" or "not ok NAME - why". All waits have a deadline.
 */
#ifndef DUO_H
#define DUO_H

#include <stdatomic.h>

#include <tupleq/tupleq.h>

#include "../expect.h"

#define DUO_DEADLINE 60 /* seconds that a test may take */

#define DUO_CTX 5 /* the number of the context */

struct duo {
	int me;     /* 0 or 1: rank, and node */
	int socket; /* to the other */
	struct tq_ep *ep;
	struct tq_peer *peers[2]; /* by rank: this process, and the other */
	struct tq_ctx *ctx;
	_Atomic unsigned errors; /* sentences of level ERROR, and the first of them */
	char error[512];
};

/* An operation that is under way. */
struct duo_op {
	bool ended;
	struct tq_status status;
	struct tq_req *req;
};

typedef void duo_fn(struct duo *d);

/* "NAME=VALUE" for each endpoint of the tests that follow; until all but the first n are dropped.
 */
int duo_param(const char *assignment);
void duo_params_keep(int n);
/* How many tests have failed. */
int duo_failed(void);
/* Prints a test's result; why may be NULL if it is ok. */
void duo_result(const char *name, const char *why);

/* Runs a test in two processes that are connected by endpoints, which are closed after it. */
void duo_run(const char *name, duo_fn *fn);
/* The same with process 1 ending by SIGKILL. The other one closes its endpoint; nothing of the job
 * outlives the next one. */
void duo_run_killed(const char *name, duo_fn *fn);

void duo_send(struct duo *d, int rank, int32_t tag, const void *data, size_t len, unsigned flags,
	      struct duo_op *op);
void duo_recv(struct duo *d, int rank, int32_t tag, void *data, size_t len, struct duo_op *op);
/* Makes progress until it has ended. */
void duo_wait(struct duo *d, struct duo_op *op);
/* One message from rank 0 to rank 1, whose receive is posted before it is sent; from and to `data`.
 */
void duo_pass(struct duo *d, int32_t tag, void *data, size_t len, unsigned flags);
/* Both processes come here; progress goes on meanwhile. */
void duo_meet(struct duo *d);
/* Waits until the other process has ended. */
void duo_gone(struct duo *d);
/* A counter by its name. */
uint64_t duo_counter(struct duo *d, const char *name);
/* The process ends well, and leaves all as it is: its peer is dead, or it plays dead. */
void duo_end(void) __attribute__((noreturn));
/* The process closes its endpoint, whatever the other does, and ends well. */
void duo_close(struct duo *d) __attribute__((noreturn));

#endif
