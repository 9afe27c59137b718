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

/* Starts virtual time in this process, which has that slot, if the fabric has a virtual clock. */
void shca_clock_attach(struct shca_fabric *fabric, unsigned slot, unsigned node);
/* Ends virtual time in this process. */
void shca_clock_detach(void);
/* Attaches the process before its first verbs call, if a launcher has numbered it, and joins the
 * calling thread. So the part of a rank's run before its first verbs call is the same each time. */
void shca_clock_attach_early(void);
/* Takes a process slot and attaches; verbs/process.c sets it. */
extern void (*shca_clock_take_slot)(void);
/* Notes that the process has opened a device: threads that it makes from now on may use it, and
 * have clocks. */
void shca_clock_has_device(void);
/* Forgets the parent's clocks in a forked child. */
void shca_clock_reset(void);

/*
 * Begins a call of softhca; calls may be nested. Adds the CPU time that the program took since the
 * last call, and the price of n such calls, to the thread's clock, and waits for the turn. The
 * first call of a thread joins it to the clock.
 */
void shca_clock_enter(enum shca_call what, uint64_t n);
/* Ends the call. */
void shca_clock_leave(void);
/* Begins a call whose occurrence depends on the real world: the call costs nothing, and is no event
 * of the program. */
void shca_clock_enter_free(void);
/* Waits until the real world is quiet, and keeps the turn. Returns false without waiting if nothing
 * has disturbed the real world, or if the monitor has taken the turn away. Called inside of a call.
 */
bool shca_clock_settle_first(void);
/* Returns a number that looks random, and is the same in each run with one seed. */
uint64_t shca_clock_random(void);
/* Adds the price of n such calls to the calling thread's clock. Called inside of a call. */
void shca_clock_pay(enum shca_call what, uint64_t n);

/* SHCA_CLOCKED(VERB, 1) begins a call that ends with the block. */
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

/* Waits until a time, or until an event of this process's channels comes (SHCA_ALSO_EVENTS). After
 * shca_clock_watch() a watched change ends the wait as well, and after shca_clock_listen() a signal
 * handler. The thread's clock is then the time at which it goes on. Called inside of a call. */
#define SHCA_ALSO_EVENTS 1u
/* The end of the wait is a deadline that nobody waits for: time is paced as if the thread only
 * looked. */
#define SHCA_TO_DEADLINE 2u
void shca_clock_wait(uint64_t until, unsigned also);
/* Lets a change of that kind end the calling thread's next wait, too. Called inside of a call. */
void shca_clock_watch(enum shca_watching what);
/* Lets signal handlers of these kinds (shca_handler_kind; 0: none) end the waits of the calling
 * thread. */
void shca_clock_listen(uint32_t kinds);
/* Returns true if such a handler ran since shca_clock_listen(). */
bool shca_clock_heard(void);
/* Begins and ends the run of a signal handler of the program, in any thread. The second function
 * takes the result of the first. */
bool shca_clock_begin_handler(uint32_t kind);
void shca_clock_end_handler(bool was_in_handler);
/* Returns true if the calling thread, in its program or a signal handler, sees virtual time. */
bool shca_clock_sees_virtual(void);
/* Notes that waiting threads may be about to handle signals: the real world isn't quiet before they
 * have done so. */
void shca_clock_signalled(void);
/* Lets the next wait with SHCA_ALSO_EVENTS end at once if an event comes between the look that
 * follows and the wait: the reaper sends some without a turn. False: there is no such wait.
 * Called inside of a call. */
void shca_clock_expect_events(bool expects);
/* Lets the threads of this process that watch something look now. Any thread. */
void shca_clock_wake_process(void);
/* Lets the threads of this process that wait for a lock look now. Called inside of a call. */
void shca_clock_wake_lock_waiters(void);
/* Lets the threads of all processes that wait for a lock look now. Called inside of a call. */
void shca_clock_wake_shared_lock_waiters(void);
/* Lets the threads of all processes that wait for a lock look now, because the calling thread,
 * which may have no clock, released one that processes share. Does nothing inside of a call,
 * because the lock is softhca's own then. */
void shca_clock_released_shared(void);
/* Returns the calling thread's actor, or SHCA_NO_ACTOR. */
uint32_t shca_clock_actor(void);
/* Lets a thread of this process look now, if it watches something. Called by a thread without a
 * clock. */
void shca_clock_look(uint32_t actor);
/* Waits until a channel's FIFO can be read, if reading it would block. Returns 0, or -1 with EINTR
 * in errno if a signal handler ended the wait. Called inside of a call, or in real time. */
int shca_clock_await_event(int fd);
/* Gives the turn away for a wait in the real world. Called inside of a call, or by the thread that
 * ends the process. */
void shca_clock_out(void);
/* Takes the turn again after that wait. */
void shca_clock_back(void);
/* Takes the turn again if the monitor has taken it from the calling thread, which has joined the
 * clock and is in its program. */
void shca_clock_reclaim(void);
/* Lets the threads of this process that spin look at the end of their polling periods. Called
 * inside of a call. */
void shca_clock_wake_spinning(void);
/* Marks the calling thread as softhca's own: nothing that it does is the program's. */
void shca_clock_exclude(void);
/* Returns true if a thread that the calling thread makes gets a clock with its first call. */
bool shca_clock_is_inherited(void);
/* Marks the calling thread, which is new, as one that gets a clock with its first call. */
void shca_clock_inherit(void);
/* Joins the calling thread to the clock if it is in its program, inherits a clock, and has not
 * joined yet. Returns true if the thread has joined, and is in its program. */
bool shca_clock_join(void);
/* Notes that threads without a clock may be busy in the real world from here on. */
void shca_clock_disturb(void);
/* Returns true if that thread of this process has joined the clock. */
bool shca_clock_is_joined(pid_t tid);
/* Charges a yield, or a look at descriptors, and returns true if the thread keeps the turn, because
 * it has polled just before. Returns false, without a charge, if the thread has to give the turn
 * away. */
bool shca_clock_try_free_yield(void);
/* Charges a poll and returns true if the thread keeps the turn, because it spins and has polled
 * elsewhere in this round. Returns false, without a charge, if the poll has to be a sync point. */
bool shca_clock_try_free_poll(const void *place);
/* Returns the time that the calling thread sees: its clock, or the fabric's time if the thread has
 * none. Adds the CPU time since the last call and the price of this one to the clock of a thread in
 * its program. */
uint64_t shca_clock_read(void);
/* Returns true if another thread of this process is parked at a yield: it may want a lock that the
 * calling thread holds. */
bool shca_clock_is_contended(void);
/* Returns when something will be at a place; 0: nothing is known. */
typedef uint64_t shca_visible_fn(void *place);
/* Notes that the thread looked for something in vain, at that place (NULL: elsewhere). Returns true
 * if the thread was parked until something came, and should look again. Called inside of a call. */
bool shca_clock_found_nothing(void *place, shca_visible_fn *visible);

/* --- spin.c --- */
/* How long a spinning thread is to be parked: until `at`, when something is there for it
 * (SHCA_NEVER: nothing is known), or until something else comes, rounded up to its polling period,
 * but not beyond `look`. */
struct shca_spin_park {
	uint64_t at, period, look;
};
/* Notes an empty look, as shca_clock_found_nothing(), which calls this. Returns true if the thread
 * is to be parked. `contended`: see shca_clock_is_contended(). */
bool shca_spin_note_empty_look(void *place, shca_visible_fn *visible, bool contended,
			       struct shca_spin_park *park);
/* Notes that the thread found something. */
void shca_spin_end(void);
/* Makes all threads forget their places, because one is about to be freed. */
void shca_spin_forget_places(void);
/* Notes how long (ns) the program computed between two calls. turn.c calls it. */
void shca_spin_gap(uint64_t ns);
/* Notes whether another thread had the turn at this sync point. turn.c calls it. */
void shca_spin_cold(bool cold);
/* Counts a yield of the thread, or a look at descriptors, and returns true if it needs no sync
 * point, because the poll just before it was one. */
bool shca_spin_try_skip_sync(void);
/* Counts a look of a thread that spins, and returns true, if the thread will find nothing at that
 * place, which isn't the one where it is parked: it has had its sync point in this round of looks.
 */
bool shca_spin_try_skip_poll(const void *place, uint64_t now);

/* --- charge.c --- */
/* Ends a stretch in which the thread ran its program. Returns its CPU time (ns). */
uint64_t shca_charge_end(void);
/* Begins such a stretch. */
void shca_charge_begin(void);
/* Notes that the thread was off the CPU since its last stretch ended. */
void shca_charge_stale(void);

/* --- affinity.c --- */
/* Puts the calling thread on that CPU (-1: leaves it where it is), and remembers the affinity that
 * it would have otherwise. */
void shca_affinity_pin(int cpu);

/* --- the TSC --- */
/* Makes the calling thread trap when it reads the TSC. libsofthca-clock.so sets it. */
extern void (*shca_clock_trap)(void);
/* Returns true if threads in virtual time trap. */
bool shca_clock_traps(void);
/* Returns the value that a trapped thread reads. */
uint64_t shca_clock_tsc(void);
/* Lets charge.c ask the kernel for the CPU time, because the CPU's counter can't be read without a
 * trap. */
void shca_charge_without_tsc(void);

/* --- log.c --- */
/* Opens the file that --clock-log names. */
void shca_log_open(const struct shca_config *config);
/* Notes a call that is an event of the calling thread's program, and so the same in each run. */
void shca_log_call(enum shca_call what);
/* Notes a completion that the process with that slot may see from a time on. The caller has the
 * turn. */
void shca_log_completion(unsigned slot, uint64_t at, uint32_t opcode, uint32_t status,
			 uint32_t bytes);

/* --- settle.c --- */
/* Waits until those processes of the job are quiet that may be busy in the real world. Gives up,
 * and counts that in `unquiet`, if the launcher has ended or its monitor doesn't answer for ten
 * minutes. The caller has the turn, and not the lock. */
void shca_clock_settle(struct shca_clock *clock);

/* --- the adapters (../hca/execution/serve_virtual.c) --- */
/* Executes the work that is due in this process's adapters. */
extern void (*shca_clock_adapter)(void);
/* Takes a step for an actor of this process that wants the turn. Returns true if the actor has the
 * turn now; if not, the first one has. */
bool shca_turn_step(uint32_t actor);
/* Sets when this process's adapters are due next. The caller has the turn. */
static inline void shca_clock_due(unsigned slot, uint64_t when)
{
	atomic_store(&shca_clk->due[slot], when);
	if (when != SHCA_NEVER)
		shca_actor_sooner(shca_clk, slot, when);
}

#endif
