/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers: what net/ does at a later time, in one list by due time. Most are for datagrams that get
 * lost, and are repeated until their answer comes.
 */
#ifndef TQ_NET_TIMERS_H
#define TQ_NET_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct tq_net;

/* Handles the end of a timer's time. May arm and stop any timer, also the one that fires. */
typedef void tq_timer_fire(struct tq_net *net, void *owner, uint64_t now);

/* All zero: not armed. */
struct tq_timer {
	uint64_t due; /* ns */
	tq_timer_fire *fire;
	void *owner;
	bool armed;
	struct tq_timer *next, *prev; /* tq_timers.armed */
};

struct tq_timers {
	struct tq_timer *armed; /* list, the next one that is due comes first */
	uint64_t polled;        /* ns: the last poll that found some */
};

/* Has fire(owner) called at the first poll from `due` on, once. Moves a timer that is armed. */
void tq_timer_arm(struct tq_net *net, struct tq_timer *timer, uint64_t due, tq_timer_fire *fire,
		  void *owner);
/* Does nothing if the timer isn't armed. */
void tq_timer_stop(struct tq_net *net, struct tq_timer *timer);
/* Fires the timers that are due. */
void tq_timers_poll(struct tq_net *net);
/* Returns the ns until a timer is due; UINT64_MAX: none is armed. */
uint64_t tq_timers_next(const struct tq_net *net);

#endif
