/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/timers.h"

#include "base/util.h"
#include "net/adapter/objects.h"

void tq_timer_arm(struct tq_net *net, struct tq_timer *timer, uint64_t due, tq_timer_fire *fire,
		  void *owner)
{
	struct tq_timers *timers = &net->timers;
	struct tq_timer *before;

	tq_timer_stop(net, timer);
	/* A timer that fires and is armed for now fires at the next poll: in this one it would fire
	 * for ever. */
	timer->due = due > timers->polled ? due : timers->polled + 1;
	timer->fire = fire;
	timer->owner = owner;
	timer->armed = true;
	/* Timers of a kind have about the same interval, so the place is near the end. */
	before = timers->armed ? timers->armed->prev : NULL;
	while (before && before->due > timer->due)
		before = before == timers->armed ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(timers->armed, before, timer);
	else
		DL_PREPEND(timers->armed, timer);
}

void tq_timer_stop(struct tq_net *net, struct tq_timer *timer)
{
	if (!timer->armed)
		return;
	timer->armed = false;
	DL_DELETE(net->timers.armed, timer);
}

void tq_timers_poll(struct tq_net *net)
{
	struct tq_timers *timers = &net->timers;
	struct tq_timer *timer;

	/* The clock is read only if a timer is armed. */
	if (!timers->armed)
		return;
	timers->polled = tq_now();
	while ((timer = timers->armed) && timer->due <= timers->polled) {
		tq_timer_stop(net, timer);
		timer->fire(net, timer->owner, timers->polled);
	}
}

uint64_t tq_timers_next(const struct tq_net *net)
{
	const struct tq_timer *first = net->timers.armed;
	uint64_t now;

	if (!first)
		return UINT64_MAX;
	now = tq_now();
	return first->due > now ? first->due - now : 0;
}
