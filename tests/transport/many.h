/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several endpoints of libtupleq in one process, one thread that polls whom it wants. A case runs
 * in a process of its own, which ends without closing: what is held stays so.
 */
#ifndef MANY_H
#define MANY_H

#include <time.h>

#include "../expect.h"
#include "ep/ep.h"

#define MANY_MOST 20
#define MANY_TAG  5

struct many_op {
	bool ended;
	struct tq_status status;
	struct tq_req *req;
};

struct many_case {
	const char *name;
	void (*run)(void);
};

extern struct tq_ep *many_eps[MANY_MOST];
extern struct tq_peer *many_peers[MANY_MOST][MANY_MOST]; /* [i][j]: j, as i knows it */
extern int many_neps;
extern time_t many_deadline; /* seconds that anything may take; $MANY_DEADLINE says how many */
extern int many_errors;      /* that were logged, and the last of them */
extern char many_error[512];
/* NULL, or called for each request that ends. */
extern void (*many_completed)(struct many_op *op);

/* n endpoints, on a node (that is, in a job) each or all on one, with "NAME=VALUE"s.
 * They have no service thread, unless one asks for it. */
void many_open(int n, bool nodes, const char *const *params);
/* The same, on the nodes that are named. */
void many_open_on(int n, const int *nodes, const char *const *params);
/* Opens one more, on that node, and returns its number. */
int many_open_one(int node, const char *const *params);
/* i gets to know j. */
void many_know(int i, int j);
void many_know_all(void);
/* A context between n endpoints, whose ranks they are in that order. */
void many_context(uint32_t id, int n, const int *who, struct tq_ctx **ctx);
uint64_t many_counter(int ep, const char *name);
/* The highest value of a level. */
uint64_t many_high(int ep, const char *name);

/* All make progress, so many times. */
void many_spin(int rounds);
/* Makes progress until it has ended; false: it doesn't. */
bool many_comes(const struct many_op *op);
void many_send(struct tq_ctx *ctx, int rank, int32_t tag, const char *text, unsigned flags,
	       struct many_op *op);
void many_recv(struct tq_ctx *ctx, int rank, int32_t tag, char data[64], struct many_op *op);
void many_recv_long(struct tq_ctx *ctx, int rank, int32_t tag, char *data, size_t size,
		    struct many_op *op);
/* A message whose receive is in time. */
void many_pass(struct tq_ctx *from, struct tq_ctx *to, int from_rank, int to_rank);

/* As if what is sent to others had all of B's send completion queue, or no more. */
uint32_t many_take_slots(void);
void many_give_slots(uint32_t taken);

/* Runs the case that is called as the command line says, or those whose names hold that. */
int many_main(const struct many_case *cases, int n, int argc, char **argv);

#endif
