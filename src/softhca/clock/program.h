/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.h - what libsofthca.so offers to libsofthca-clock.so, which stands in front of the C
 * library: a thread of the program wants to know the time, or to wait. All times are ns of
 * CLOCK_MONOTONIC as the program sees it.
 */
#ifndef SHCA_PROGRAM_H
#define SHCA_PROGRAM_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHCA_PROGRAM __attribute__((visibility("default")))
#define SHCA_FOREVER UINT64_MAX

/* Kinds of signal handlers. */
enum shca_heard {
	SHCA_HEARD_RESTART = 1,   /* with SA_RESTART */
	SHCA_HEARD_INTERRUPT = 2, /* without */
	SHCA_HEARD_ANY = 3,
};

/* Returns true if the calling thread has a clock, and is in its program. Otherwise none of the
 * others may be called, and time is real. */
SHCA_PROGRAM bool shca_program_is_clocked(void);
/* Returns true if the calling thread reads virtual time: also in a signal handler. */
SHCA_PROGRAM bool shca_program_tells_time(void);
/* Around a handler that the program has for a signal, in any thread. */
SHCA_PROGRAM bool shca_program_handler_begins(uint32_t kind);
SHCA_PROGRAM void shca_program_handler_ends(bool handled);
/* Any thread did, or is about to do, something that sends a signal. */
SHCA_PROGRAM void shca_program_signals(void);
/* Returns the time, and takes what reading it costs. */
SHCA_PROGRAM uint64_t shca_program_now(void);
/* Returns true if computing takes no time, so that runs can be repeated; and a number that looks
 * random, and is then the same in each. */
SHCA_PROGRAM bool shca_program_is_repeatable(void);
SHCA_PROGRAM uint64_t shca_program_random(void);
/* CLOCK_REALTIME less CLOCK_MONOTONIC. */
SHCA_PROGRAM uint64_t shca_program_date(void);

/* Begins and ends a call that may wait: a sync point. */
SHCA_PROGRAM void shca_program_enter(void);
SHCA_PROGRAM void shca_program_leave(void);
/* Begins one that takes place or not as the real world likes: costs nothing, and is no event of the
 * program. */
SHCA_PROGRAM void shca_program_enter_free(void);
/* Between these two: waits until the real world is quiet, and keeps the turn. False: it was. */
SHCA_PROGRAM bool shca_program_settles(void);
/* ... lets signal handlers of these kinds (shca_heard) end the sleeps that follow, until it is
 * called with 0. The second one returns true if a handler ran since. */
SHCA_PROGRAM void shca_program_listens(uint32_t kinds);
SHCA_PROGRAM bool shca_program_heard(void);
/* ... sleeps until a time, or until an event of a completion channel comes
 * (`events`). */
SHCA_PROGRAM void shca_program_sleep(uint64_t until, bool events);
/* ... sleeps until a deadline of the program: time is paced as if the thread only looked. */
SHCA_PROGRAM void shca_program_sleep_to_deadline(uint64_t until);
/* ... before it looks for something that a thread of this process may do, or also anybody else in
 * the real world (`world`): the sleep that follows ends then, too. */
SHCA_PROGRAM void shca_program_watches(bool world);
/* Returns a number of the calling thread, and ends the sleep of the thread with that number, if it
 * watches anything. The latter is for threads without a clock. */
SHCA_PROGRAM uint32_t shca_program_actor(void);
SHCA_PROGRAM void shca_program_look(uint32_t actor);
/* ... looked for something in vain and will again: parks the thread if it spins. */
SHCA_PROGRAM void shca_program_looked(void);
/* ... gives the turn away for a wait in the real world, and takes it again. */
SHCA_PROGRAM void shca_program_out(void);
SHCA_PROGRAM void shca_program_back(void);
/* ... waits for something that a thread of this process keeps, which goes on now if it is parked.
 */
SHCA_PROGRAM void shca_program_contends(void);
/* Some thread of this process did something that those which watch may have waited for. */
SHCA_PROGRAM bool shca_program_is_virtual(void);
SHCA_PROGRAM void shca_program_wakes(void);
/* Says what a thread that joins the clock does so that it doesn't read the TSC itself, and how that
 * is undone; and what it would read. */
SHCA_PROGRAM void shca_program_on_tsc(void (*trap)(void), void (*untrap)(void));
SHCA_PROGRAM uint64_t shca_program_tsc(void);
/* Returns true if threads of this process trap. */
SHCA_PROGRAM bool shca_program_traps(void);
/* The calling thread has no clock yet, or is about to become another program; it is as it was. */
SHCA_PROGRAM void shca_program_begins(void);
SHCA_PROGRAM void shca_program_again(void);
/* A thread without a clock is about to make another: it may get one, if its process is one of a job
 * that has not called verbs yet. */
SHCA_PROGRAM void shca_program_makes_thread(void);
/* Returns true if the thread that one with a clock makes has one, too, from the first call that it
 * makes; and that thread says so. */
SHCA_PROGRAM bool shca_program_has_heirs(void);
SHCA_PROGRAM void shca_program_inherits(void);
/* The CPUs on which the calling thread may run, as its program knows; false: as the kernel knows. A
 * new thread may run there by right. */
SHCA_PROGRAM bool shca_program_cpus(cpu_set_t *set);
SHCA_PROGRAM void shca_program_set_cpus(const cpu_set_t *set);
/* The program did something that may wake other threads of its process in the real world. */
SHCA_PROGRAM void shca_program_stirs(void);
/* Any thread did, or is about to do, something that may wake other processes. */
SHCA_PROGRAM void shca_program_reaches(void);
/* Returns true if something did, and nobody has waited for that yet. */
SHCA_PROGRAM bool shca_program_is_stirred(void);
/* Returns true if that thread of this process has a clock. */
SHCA_PROGRAM bool shca_program_has_clock(pid_t tid);
/* Returns true if all that a process's descriptor tells of are events of verbs. */
SHCA_PROGRAM bool shca_program_is_channel(int fd);

#endif
