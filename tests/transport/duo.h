/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of libtupleq with two processes on two nodes; on one with $TEST_INTRANODE, a value of the
 * parameter intranode. Each test forks the processes anew, which exchange addresses through a
 * socket. The result is printed as "ok NAME" or "not ok NAME - why". All waits have a deadline.
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
	int socket; /* to the other process */
	struct tq_ep *ep;
	struct tq_peer *peers[2]; /* by rank, this process among them */
	struct tq_ctx *ctx;
	_Atomic unsigned errors; /* lines of level ERROR in the log, and the first of them */
	char error[512];
};

/* An operation that is under way. */
struct duo_op {
	bool ended;
	struct tq_status status;
	struct tq_req *req;
};

typedef void duo_fn(struct duo *duo);

/*
 * Sets a parameter, as "NAME=VALUE", for all endpoints of the tests that follow, until all
 * parameters but the first n are dropped.
 */
int duo_param(const char *assignment);
void duo_params_keep(int n);
/* Returns how many tests have failed. */
int duo_failed(void);
/* Prints the result of a test: NULL, or why it failed. */
void duo_result(const char *name, const char *why);

/* Runs a test in two processes that are connected by endpoints, which are closed after it. */
void duo_run(const char *name, duo_fn *fn);
/*
 * Runs a test in which process 1 ends by SIGKILL, and the other closes its endpoint. Nothing of the
 * job may be left when the next endpoint was opened and closed.
 */
void duo_run_killed(const char *name, duo_fn *fn);

/* Fill data with bytes that depend on the seed, and return one of these bytes. */
void duo_fill(unsigned char *data, size_t len, unsigned seed);
unsigned char duo_byte(size_t at, unsigned seed);

void duo_send(struct duo *duo, int rank, int32_t tag, const void *data, size_t len, unsigned flags,
	      struct duo_op *op);
void duo_recv(struct duo *duo, int rank, int32_t tag, void *data, size_t len, struct duo_op *op);
/* Makes progress until the operation has ended. */
void duo_wait(struct duo *duo, struct duo_op *op);
/* Passes a message in `data` from rank 0 to rank 1, whose receive is posted first. */
void duo_pass(struct duo *duo, int32_t tag, void *data, size_t len, unsigned flags);
/* Gives the other process the address and key of registered memory, and gets those of the other
 * process's memory. */
void duo_swap_memory(struct duo *duo, const void *mem, const struct tq_mr *mr, uint64_t *addr,
		     uint32_t *key);
/* Makes progress until both processes have come here. */
void duo_meet(struct duo *duo);
/* Waits until the other process has ended. */
void duo_gone(struct duo *duo);
/* Returns the value of a counter. */
uint64_t duo_counter(struct duo *duo, const char *name);
/*
 * Ends the process without a failure and without closing anything, because its peer is dead or is
 * to believe that this one is.
 */
void duo_end(void) __attribute__((noreturn));
/* Closes the endpoint, whatever the other process does, and ends the process without a failure. */
void duo_close(struct duo *duo) __attribute__((noreturn));

#endif
