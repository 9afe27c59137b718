/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of the caller, the clock, hash tables and lists, and changes of state, for all files. */
#ifndef TQ_BASE_UTIL_H
#define TQ_BASE_UTIL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tupleq/tupleq.h>

/* ---- sentences for the caller's log (struct tq_job) ---- */

/* Logs a sentence without newline; cut after 511 bytes. */
void tq_log(const struct tq_job *job, enum tq_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the level of a warning about the host: TQ_LOG_WARN if this process is to give it,
 * TQ_LOG_DEBUG if another one does. */
enum tq_log_level tq_host_level(const struct tq_job *job, const char *kind);

/* ---- the clock for due times, in ns ---- */

#define TQ_MS UINT64_C(1000000)

/* Returns the time since some moment in the past. */
static inline uint64_t tq_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * TQ_MS + (uint64_t)now.tv_nsec;
}

/* Returns the lesser of two lengths. */
static inline uint64_t tq_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- uthash and utlist ---- */

/* uthash would end the process with exit(), and with it run the handlers of MPI and of the user. */
#define uthash_fatal(text)                                                       \
	do {                                                                     \
		fputs("TupleQ: there is no memory for a hash table.\n", stderr); \
		abort();                                                         \
	} while (0)
/* Several functions of uthash spread keys that are consecutive, and those that differ only in their
 * high bits. This one takes the fewest instructions of them. */
#define HASH_FUNCTION(key, len, value) HASH_SFH(key, len, value)
#include <uthash.h>
#include <utlist.h>

/* ---- state machines: which state may follow which, checked and traced at each change ---- */

/* Records a change of state, for tests and debugging. */
typedef void tq_trace(const char *kind, const void *object, const char *from, const char *to);

/* A kind of state machine. There are at most 16 states, numbered from 0. */
struct tq_states {
	const char *kind;           /* name of the kind of object, for the trace */
	const char *const *names;   /* by state */
	const uint16_t *successors; /* by state: the set of states that may follow, as bits */
};

/* Checks a change of state and traces it; the caller stores the new state. `trace` may be NULL. */
static inline void tq_states_change(const struct tq_states *states, tq_trace *trace,
				    const void *object, unsigned from, unsigned to)
{
	assert(states->successors[from] & 1u << to);
	if (trace)
		trace(states->kind, object, states->names[from], states->names[to]);
}

#endif
