/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procs.h - tests of several processes: children are forked before a device is opened, each on a
 * virtual node, with a shared mailbox for numbers and barriers. Everything has a deadline. If a
 * child fails (a check of expect.h prints its file and line) or dies unexpectedly, the test fails
 * and the other children are ended.
 *
 * There is one group of children at a time.
 */
#ifndef PROCS_H
#define PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util.h"

#define PROCS_MAX      16
#define PROCS_KEYS     256
#define PROCS_PARENT   PROCS_MAX /* the parent's mailbox */
#define PROCS_DEADLINE 90        /* the seconds that a group may take */

typedef void (*procs_fn)(unsigned me, void *arg);

/* Forks n children; child i runs fn(i, arg) on node nodes[i] (NULL: all on node 0) and exits 0. */
void procs_start(unsigned n, const unsigned *nodes, procs_fn fn, void *arg);
/* Waits for all children. Each must exit 0, except those that procs_kill() or procs_may_die()
 * named. */
void procs_finish(void);
/* Forks the children and waits for them. */
void procs_run(unsigned n, const unsigned *nodes, procs_fn fn, void *arg);

/* The mailbox: each process writes its own keys, once or more often. A reader waits until the key
 * was written. */
void procs_put(unsigned key, uint64_t value);
uint64_t procs_get(unsigned who, unsigned key);
/* Returns true if the key was written. */
bool procs_has(unsigned who, unsigned key);
/* Waits until the key is at least `value`: for progress counters. */
void procs_wait_for(unsigned who, unsigned key, uint64_t value);
/* Waits until all children are here, except those that procs_kill() or procs_may_die() named. */
void procs_barrier(void);

/* Exchange data between children: an address takes the keys key to key + 2, a buffer key and key +
 * 1. */
void procs_put_addr(unsigned key, const struct t_qp *qp);
struct t_addr procs_get_addr(unsigned who, unsigned key);
struct procs_buf {
	uint64_t addr;
	uint32_t rkey;
};
void procs_put_buf(unsigned key, const struct t_buf *buf);
struct procs_buf procs_get_buf(unsigned who, unsigned key);
/* Connects qp with the QP that child `who` connects under the same key; params may be NULL. The
 * connection is then up on this side only: meet at a barrier before sending. */
void procs_connect(struct t_qp *qp, unsigned who, unsigned key, const struct t_params *params);

/* Signal or reap a child, in the parent. All but procs_cont() wait until the kernel has done so. A
 * killed child stays a zombie until procs_reap() or procs_finish(). */
void procs_kill(unsigned who);
void procs_stop(unsigned who);
void procs_cont(unsigned who);
void procs_reap(unsigned who);
/* Waits until a child has ended. Returns its wait status. Unless procs_may_die() named the child, a
 * status other than 0 may fail the test. */
int procs_wait_end(unsigned who);
/* Allows the death of that child, in whatever way. */
void procs_may_die(unsigned who);
pid_t procs_pid(unsigned who);

/* Lets a crash end a child that was forked in another way. With cmocka's handlers it would go on
 * with the next test. */
void procs_default_signals(void);
/* Waits for such a child, which must exit 0. */
void procs_expect_exit(pid_t pid);
/* Skips the test under ThreadSanitizer, which allows no new threads in a child of a process that
 * has threads. */
void procs_skip_if_tsan(void);

#endif
