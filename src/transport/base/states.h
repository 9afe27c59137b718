/* SPDX-License-Identifier: BSD-3-Clause */
/* State machines: which state may follow which, checked and traced at each change. */
#ifndef TQ_BASE_STATES_H
#define TQ_BASE_STATES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Takes note of a change of state, for tests and debugging. */
typedef void tq_trace(const char *what, const void *object, const char *from, const char *to);

/* A kind of state machine. Its states are numbered from 0, and at most 16. */
struct tq_states {
	const char *what;         /* the object, for the trace */
	const char *const *names; /* by state */
	const uint16_t *next;     /* by state: the set of states that may follow, as bits */
};

/* Checks a change of state and traces it; the caller stores the new state. `trace` may be NULL. */
static inline void tq_states_change(const struct tq_states *states, tq_trace *trace,
				    const void *object, unsigned from, unsigned to)
{
	assert(states->next[from] & 1u << to);
	if (trace)
		trace(states->what, object, states->names[from], states->names[to]);
}

#endif
