/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - a thread in virtual time: what it does around verbs calls and waits. See README.md.
 *
 * A thread that has joined the clock runs its program only while it has the turn. Verbs calls are
 * sync points: the thread goes on when its clock is the smallest of all.
 */
#ifndef SHCA_CLOCK_H
#define SHCA_CLOCK_H

#include "fabric/actors.h"

/* The virtual clock of this process's fabric; NULL: time is real. */
extern struct shca_clock *shca_clk;

/* Starts virtual time in this process, if its fabric has such a clock. `slot`: of this process. */
void shca_clock_attach(struct shca_fabric *f, unsigned slot, unsigned node);
/* Ends virtual time in this process. */
void shca_clock_detach(void);
/* Does the former before the first verbs call, if the process is one of a job whose launcher
 * numbers it, and joins the calling thread: what such a process does before its first verbs call is
 * then the same in each run. */
void shca_clock_attach_early(void);
/* Takes a process slot and attaches; verbs/process.c sets it. */
extern void (*shca_clock_take_slot)(void);
/* The process has opened a device: threads that it makes from now on may use it, and have clocks.
 */
void shca_clock_has_device(void);
/* In a forked child: its threads have no clocks yet. */
void shca_clock_reset(void);

/*
 * Around what a thread asks of softhca, also nested: adds the CPU time that the program took since
 * the last one and the price of n such calls, and waits for the turn. The first time the thread
 * joins.
 */
void shca_clock_enter(enum shca_call what, uint64_t n);
void shca_clock_leave(void);
/* Does the same for a call whose occurrence depends on the real world: the call costs nothing, and
 * is no event of the program. */
void shca_clock_enter_free(void);
/* Waits until the real world is quiet, and keeps the turn. Inside of a call. False: it was. */
bool shca_clock_settle_first(void);
/* Returns a number that looks random, and is the same in each run with one seed. */
uint64_t shca_clock_random(void);
/* Adds a price to the calling thread's clock, inside of these two. */
void shca_clock_pay(enum shca_call what, uint64_t n);

/* Leaves at the end of a block: SHCA_CLOCKED(VERB, 1); */
static inline bool shca_clocked(enum shca_call what, uint64_t n)
{
	if (__builtin_expect(!shca_clk, 1))
		return false;
	shca_clock_enter(what, n);
	return true;
}
static inline void shca_clocked_end(const bool *clocked)
{
	if (*clocked)
		shca_clock_leave();
}
#define SHCA_CLOCKED(what, n)                                                             \
	__attribute__((cleanup(shca_clocked_end), unused)) const bool shca_clocked_here = \
		shca_clocked(SHCA_CALL_##what, n)

/* Waits inside of a call until a time, an event of this process's channels (SHCA_ALSO_EVENTS), or,
 * after shca_clock_watch(), until what it watches may have happened, or, after shca_clock_listen(),
 * until a signal handler ran. The thread's clock is then the time at which it goes on. */
#define SHCA_ALSO_EVENTS 1u
/* With this one the end of the wait is a deadline, and nothing that others wait for: time is paced
 * as if the thread looked. */
#define SHCA_TO_DEADLINE 2u
void shca_clock_wait(uint64_t until, unsigned also);
void shca_clock_watch(enum shca_watching what);
/* Lets signal handlers of the program end the waits of the calling thread: those of some kinds
 * (shca_heard), or none (0). */
void shca_clock_listen(uint32_t kinds);
/* Returns true if one ran since. */
bool shca_clock_heard(void);
/* Around a handler that the program has for a signal, in any thread. Returns what the second one
 * takes. */
bool shca_clock_handler_begins(uint32_t kind);
void shca_clock_handler_ends(bool handled);
/* Returns true if the calling thread, in its program or a signal handler, sees virtual time. */
bool shca_clock_tells(void);
/* Threads that wait may be about to handle signals: the real world is not quiet before. */
void shca_clock_signalled(void);
/* Lets the threads of this process that watch something look now. Any thread. */
void shca_clock_wake_process(void);
/* Returns the calling thread's actor, or SHCA_NO_ACTOR. */
uint32_t shca_clock_actor(void);
/* Lets a thread of this process look now, if it watches something. A thread without a clock. */
void shca_clock_look(uint32_t actor);
/* Waits until a channel's FIFO can be read, if reading it would block. Inside of a call, or in real
 * time. Returns -1, with EINTR in errno, if a signal handler ended the wait. */
int shca_clock_await_event(int fd);
/* Gives the turn away for a wait in the real world, and takes it again. Inside of a call. */
void shca_clock_out(void);
void shca_clock_back(void);
/* Lets the threads of this process that spin look now. */
void shca_clock_contend(void);
/* The calling thread is softhca's own: nothing that it does is the program's. */
void shca_clock_exclude(void);
/* Returns true if a thread that the calling thread makes has a clock; and the new thread says so.
 */
bool shca_clock_has_heirs(void);
void shca_clock_inherit(void);
/* Returns true if the calling thread has joined the clock, and is in its program. */
bool shca_clock_in_program(void);
/* Returns true if that thread of this process has joined it. */
bool shca_clock_is_joined(pid_t tid);
/* The calling thread's clock now, in its program. */
uint64_t shca_clock_read(void);
/* Parks a thread that spins until `at`, when something is there for it, or something else comes,
 * rounded up to its polling period, or until `look`. True: something is there. */
bool shca_clock_park(uint64_t at, uint64_t period, uint64_t look);
/* The calling thread's clock. */
uint64_t shca_clock_mine(void);

/* --- spin.c --- */
/* A thread looked for something and found nothing, or something. Inside of a call. `visible`
 * returns when something will be there at `place` (0: nothing is known; NULL: never asked). True:
 * the thread was parked, and it may be there now. */
typedef uint64_t shca_visible_fn(void *place);
bool shca_spin_in_vain(void *place, shca_visible_fn *visible);
void shca_spin_end(void);
/* A place is to be freed: all threads forget theirs. */
void shca_spin_forget(void);
/* The program computed for so long between two calls. turn.c calls it. */
void shca_spin_gap(uint64_t ns);

/* --- charge.c --- */
/* Ends and begins a stretch in which the thread runs its program; the CPU time of the one that
 * ended (ns). */
uint64_t shca_charge_end(void);
void shca_charge_begin(void);
/* The thread was off the CPU since it ended. */
void shca_charge_stale(void);

/* --- affinity.c --- */
/* Puts the calling thread on that CPU (-1: leaves it), and remembers where it may run by right. */
void shca_affinity_pin(int cpu);

/* --- the TSC --- */
/* Makes the calling thread trap when it reads the TSC; by libsofthca-clock.so. */
extern void (*shca_clock_trap)(void);
/* Returns true if threads in virtual time are to trap; and what such a thread reads then. */
bool shca_clock_traps(void);
uint64_t shca_clock_tsc(void);
/* The counter of the CPU can't be read without a trap: charge.c asks the kernel instead. */
void shca_charge_without_tsc(void);

/* --- log.c --- */
/* Opens the file that --clock-log names. */
void shca_log_open(const struct shca_config *config);
/* Notes a call that is an event of the calling thread's program: the same in each run. */
void shca_log_call(enum shca_call what);
/* Notes a completion that the process with that slot may see from a time on. The caller has the
 * turn. */
void shca_log_completion(unsigned slot, uint64_t at, uint32_t opcode, uint32_t status,
			 uint32_t bytes);

/* --- settle.c --- */
/* Waits until nothing of this job is busy in the real world. */
void shca_clock_settle(struct shca_clock *c);

/* --- the adapter (engine.c) --- */
/* Executes what is due in this process's adapters. */
extern void (*shca_clock_adapter)(void);
/* Takes a step for an actor of this process that wants the turn. Returns true if the actor has the
 * turn now; if not, the first one has. */
bool shca_turn_step(uint32_t actor);
/* When this process's adapters are due next. By whoever has the turn. */
static inline void shca_clock_due(unsigned slot, uint64_t when)
{
	atomic_store_explicit(&shca_clk->due[slot], when, memory_order_relaxed);
	if (when != SHCA_NEVER)
		shca_actor_sooner(shca_clk, slot, when);
}

#endif
