/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the other process's memory, for the tests of tq_rma(). */
#ifndef RMA_H
#define RMA_H

#include "duo.h"

#define RMA_PAGE 4096u
#define RMA_ALL  (TQ_ACCESS_READ | TQ_ACCESS_WRITE)
#define RMA_LONG ((size_t)(3 << 20) + 5)

/* Memory of this process that the other may use, and the address and key of the other's. */
struct rma_window {
	unsigned char *mem;
	struct tq_mr *mr;
	uint64_t addr;
	uint32_t key;
};

/* The ends of operations. */
struct rma_end {
	unsigned ended;
	unsigned failed; /* ended with an error */
	int error;       /* the last error; 0: none */
};

bool rma_has_atomics(const struct duo *duo);

/* Exposes zeroed memory in both processes, with these rights; RMA_ALL gives all rights. */
void rma_window_expose(struct duo *duo, struct rma_window *window, size_t size, unsigned access);
void rma_window_open(struct duo *duo, struct rma_window *window, size_t size);
void rma_window_close(struct duo *duo, struct rma_window *window);

/* The callback of an operation whose `user` is a struct rma_end. */
void rma_done(void *user, int error);
/* Makes progress until n operations have ended. */
void rma_await(struct duo *duo, struct rma_end *end, unsigned n);
void rma_start(struct duo *duo, int rank, struct tq_rma rma, struct rma_end *end);
/* Starts an operation and waits for its end. Returns the operation's error. */
int rma_go(struct duo *duo, int rank, struct tq_rma rma);
void rma_go_well(struct duo *duo, int rank, struct tq_rma rma);

/* Runs the tests in which operations are refused or fail (rma_faults.c). `alone`: only the test's
 * thread makes progress. */
void rma_faults(bool alone);

#endif
