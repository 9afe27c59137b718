/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - the two processes of the benchmark, and their means besides verbs: shared control data,
 * barriers, the clock, and a way to fail that takes both down.
 */
#ifndef BENCH_VERBS_PAIR_H
#define BENCH_VERBS_PAIR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CACHE_LINE      64
#define PAIR_RING_SLOTS 1024

enum lane_kind { LANE_RC, LANE_XRC, LANE_UD, LANE_KINDS };

/* The facts of a lane that the peer needs to connect to it. */
struct lane_info {
	uint32_t qpn;     /* where sends of the peer arrive: QP, or XRC target QP */
	uint32_t ini_qpn; /* XRC: the initiator QP that the target QP answers to */
	uint32_t srqn;    /* XRC */
};

/* The facts of a process that the peer needs. */
struct process_info {
	pid_t pid;
	uint16_t lid;
	uint32_t rkey;
	uint64_t recv_buf;
	struct lane_info lane[LANE_KINDS];
};

struct padded_counter {
	_Alignas(CACHE_LINE) _Atomic uint64_t value;
};

struct pair_shared {
	pthread_barrier_t barrier;
	struct process_info info[2];
	/* Written by rank 0 before a barrier, read by rank 1 after it. */
	unsigned count;
	bool again;
	bool vm_allowed;
	uint64_t end_ns; /* when rank 1 had all of a one-way round; read after a barrier */
	struct padded_counter arrived[2];
	struct padded_counter line[2];               /* the bare ping-pong */
	struct padded_counter posted[2][LANE_KINDS]; /* receives that a rank has ever posted */
	struct padded_counter slot[PAIR_RING_SLOTS]; /* the bare one-way ring */
	struct padded_counter taken;                 /* messages that its reader has taken */
};

struct process_pair {
	struct pair_shared *sh;
	int rank; /* 0 measures, 1 answers */
	uint64_t gates;
};

/* Loops that wait count here; see pair_idle(). */
struct idle {
	uint32_t spins;
	uint64_t since;
};

/* Maps the shared data and forks rank 1. Each process returns with its rank; neither outlives the
 * other. */
void pair_start(struct process_pair *pair);

/* Rank 0 waits here for the end of rank 1; rank 1 doesn't return. */
void pair_end(struct process_pair *pair);

/* Waits for the other process, asleep. */
void pair_barrier(struct process_pair *pair);

/* Waits for the other process awake, so that both leave at the same moment: a process that sleeps
 * leaves later by the time that it takes to wake up. */
void pair_gate(struct process_pair *pair);

/* Pins rank 0 to the first and rank 1 to the second CPU they may use, or gives both all of them
 * back. */
void pair_pin(struct process_pair *pair, bool on);

/* Returns how many CPUs this process may use. */
int pair_cpus(void);

uint64_t now_ns(void);

/* Ends both processes with a message on stderr. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Yields the CPU, and ends the benchmark if nothing has come for 20 s. */
void pair_idle_slow(struct idle *idle);

/*
 * Counts an empty poll. Yields the CPU from time to time, because there may be one CPU only, and
 * ends the benchmark when nothing has come for 20 s.
 */
static inline void pair_idle(struct idle *idle)
{
	if ((++idle->spins & 0xfff) == 0)
		pair_idle_slow(idle);
}

#endif
