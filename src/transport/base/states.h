/* SPDX-License-Identifier: BSD-3-Clause */
/* State machines: which state may follow which, checked and traced at each change. */
#ifndef TQ_BASE_STATES_H
#define TQ_BASE_STATES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

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
