/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.h - what libsofthca.so offers to libsofthca-clock.so, which stands in front of the C
 * library: a thread of the program wants to know the time, or to wait. All times are ns of
 * CLOCK_MONOTONIC as the program sees it.
 */
#ifndef SHCA_PROGRAM_H
#define SHCA_PROGRAM_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHCA_PROGRAM __attribute__((visibility("default")))
#define SHCA_FOREVER UINT64_MAX

/* Kinds of signal handlers. */
enum shca_handler_kind {
	SHCA_HANDLER_RESTART = 1,   /* with SA_RESTART */
	SHCA_HANDLER_INTERRUPT = 2, /* without */
	SHCA_HANDLER_ANY = 3,
};

/* Joins the calling thread to the clock if it is in its program, inherits a clock, and has not
 * joined yet. Returns true if the thread is in its program, and has a clock. Otherwise it may call
 * only the functions that say so and those of section "any thread". */
SHCA_PROGRAM bool shca_program_join(void);
/* Returns true if the calling thread reads virtual time: also in a signal handler, and without a
 * clock. Any thread may call this, and may call shca_program_now() and
 * shca_program_realtime_offset() if the result is true. */
SHCA_PROGRAM bool shca_program_sees_virtual(void);
/* Begins and ends the run of a signal handler of the program, in any thread. The second function
 * takes the result of the first. */
SHCA_PROGRAM bool shca_program_begin_handler(uint32_t kind);
SHCA_PROGRAM void shca_program_end_handler(bool was_in_handler);
/* Notes that the calling thread, any one, sends a signal or is about to. */
SHCA_PROGRAM void shca_program_note_signal(void);
/* Returns the time, and adds the price of reading it. */
SHCA_PROGRAM uint64_t shca_program_now(void);
/* Returns true if computing takes no time, so that runs can be repeated. */
SHCA_PROGRAM bool shca_program_is_repeatable(void);
/* Returns a number that looks random, and is the same in runs that are repeated. */
SHCA_PROGRAM uint64_t shca_program_random(void);
/* Returns CLOCK_REALTIME less CLOCK_MONOTONIC (ns). */
SHCA_PROGRAM uint64_t shca_program_realtime_offset(void);

/* Takes the turn again after a call that may have blocked in the kernel for so long that the thread
 * has lost it. errno stays. */
SHCA_PROGRAM void shca_program_reclaim(void);

/* Begins a call that may wait, which is a sync point. */
SHCA_PROGRAM void shca_program_enter(void);
/* Begins a call whose occurrence depends on the real world: the call costs nothing, and is no event
 * of the program. */
SHCA_PROGRAM void shca_program_enter_free(void);
/* Ends a call that shca_program_enter() or shca_program_enter_free() began. */
SHCA_PROGRAM void shca_program_leave(void);

/* ---- inside of a call ---- */

/* Waits until the real world is quiet, and keeps the turn. Returns false without waiting if nothing
 * has disturbed the real world, or if the monitor has taken the turn away. */
SHCA_PROGRAM bool shca_program_settle(void);
/* Lets signal handlers of these kinds (shca_handler_kind; 0: none) end the sleeps that follow. */
SHCA_PROGRAM void shca_program_listen(uint32_t kinds);
/* Returns true if a handler of the kinds that shca_program_listen() named ran since that call. */
SHCA_PROGRAM bool shca_program_heard(void);
/* Sleeps until a time, or with `events` until an event of a completion channel comes. */
SHCA_PROGRAM void shca_program_sleep(uint64_t until, bool events);
/* Lets the next sleep with `events` end at once if an event comes between the look that follows and
 * the sleep. False: there is no such sleep. */
SHCA_PROGRAM void shca_program_expect_events(bool expects);
/* Sleeps until a deadline of the program: time is paced as if the thread only looked. */
SHCA_PROGRAM void shca_program_sleep_to_deadline(uint64_t until);
/* Lets the next sleep also end when a thread of this process, or with `world` anybody in the real
 * world, may have done what the thread is about to look for. */
SHCA_PROGRAM void shca_program_watch(bool world);
/* Lets the next sleep, of a thread that waits for a lock, also end when anybody in the real world
 * may have released the lock, or when one of the next three functions or
 * shca_program_wake_process() is called. */
SHCA_PROGRAM void shca_program_watch_lock(void);
/* Ends the sleeps of the threads of this process that wait for a lock, because the caller released
 * one and goes on to wait for a signal. Threads that wait for signals sleep on: two of them would
 * wake each other for ever. */
SHCA_PROGRAM void shca_program_wake_lock_waiters(void);
/* Ends such sleeps in all processes, because the lock is one that they share. */
SHCA_PROGRAM void shca_program_wake_shared_lock_waiters(void);
/* Lets the threads of all processes that wait for a lock look, because a thread released one that
 * they share. */
SHCA_PROGRAM void shca_program_released_shared(void);
/* Returns the calling thread's actor. */
SHCA_PROGRAM uint32_t shca_program_actor(void);
/* Notes that the thread looked for something in vain and will again. Parks it if it spins. */
SHCA_PROGRAM void shca_program_looked(void);
/* Charges a yield, or a look at descriptors, and returns true if the thread keeps the turn, because
 * it has polled just before. Returns false, without a charge, if the thread has to give the turn
 * away. */
SHCA_PROGRAM bool shca_program_try_free_yield(void);
/* Gives the turn away for a wait in the real world. */
SHCA_PROGRAM void shca_program_out(void);
/* Takes the turn again. */
SHCA_PROGRAM void shca_program_back(void);
/* Gives the turn away for a whole call of the program, which may wait in the real world. */
static inline void shca_program_go_out(void)
{
	shca_program_enter_free();
	shca_program_out();
}
/* Takes the turn again after that call, whose errno stays. */
static inline void shca_program_come_back(void)
{
	int error = errno;

	shca_program_back();
	shca_program_leave();
	errno = error;
}
/* Lets parked threads of this process go on, because the calling one waits for something that one
 * of them keeps. */
SHCA_PROGRAM void shca_program_wake_spinning(void);

/* ---- any thread ---- */

/* Ends the sleep of the thread with that actor, if it watches anything. Called by a thread without
 * a clock. */
SHCA_PROGRAM void shca_program_look(uint32_t actor);
/* Returns true if this process is in virtual time. */
SHCA_PROGRAM bool shca_program_is_virtual(void);
/* Ends the sleeps of the threads of this process that watch, because the caller did something that
 * they may wait for. */
SHCA_PROGRAM void shca_program_wake_process(void);
/* Sets the functions that make a thread that joins the clock trap when it reads the TSC, and that
 * undo this. */
SHCA_PROGRAM void shca_program_set_traps(void (*trap)(void), void (*untrap)(void));
/* Returns the value that a trapped thread reads. */
SHCA_PROGRAM uint64_t shca_program_tsc(void);
/* Returns true if threads of this process trap. */
SHCA_PROGRAM bool shca_program_traps(void);
/* Prepares the calling thread for having no clock: it is new, or about to replace its program. */
SHCA_PROGRAM void shca_program_untrap(void);
/* Undoes shca_program_untrap(), because the program wasn't replaced. */
SHCA_PROGRAM void shca_program_trap_again(void);
/* Prepares for a new thread that a thread without a clock makes: the caller may get a clock, if its
 * process is a rank that has not called verbs yet. */
SHCA_PROGRAM void shca_program_prepare_thread(void);
/* Returns true if a thread that the calling thread makes gets a clock with its first call. */
SHCA_PROGRAM bool shca_program_clock_is_inherited(void);
/* Marks the calling thread, which is new, as one that gets a clock with its first call. */
SHCA_PROGRAM void shca_program_inherit(void);
/* Stores the CPUs on which the program believes the calling thread may run. Returns false if the
 * kernel knows them, because the thread isn't pinned. */
SHCA_PROGRAM bool shca_program_cpus(cpu_set_t *set);
/* Sets the CPUs on which the program believes the calling thread may run. The thread is pinned:
 * shca_program_cpus() returned true. */
SHCA_PROGRAM void shca_program_set_cpus(const cpu_set_t *set);
/* Notes that the calling thread, in a forked child, runs on the program's CPUs again, so that it is
 * pinned when it joins a clock. */
SHCA_PROGRAM void shca_program_unpinned(void);
/* Notes that the calling thread may have woken other threads of its process in the real world. */
SHCA_PROGRAM void shca_program_disturb(void);
/* Notes that a thread has done, or is about to do, what may wake other processes. */
SHCA_PROGRAM void shca_program_disturb_others(void);
/* Returns true if the real world was disturbed, and nobody has waited until it was quiet since. */
SHCA_PROGRAM bool shca_program_is_disturbed(void);
/* Returns true if that thread of this process has a clock. */
SHCA_PROGRAM bool shca_program_has_clock(pid_t tid);
/* Returns true if all that a process's descriptor tells of are events of verbs. */
SHCA_PROGRAM bool shca_program_is_channel(int fd);

#endif
