/* SPDX-License-Identifier: BSD-3-Clause */
/* The network's timers: each fires once, in the order of their due times, unless it is stopped. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "net/adapter/objects.h"
#include "net/adapter/timers.h"
#include "unit_check.h"

#define FAR (tq_now() + UINT64_C(3600) * 1000 * TQ_MS)

static struct tq_net net;
static struct tq_timer timers[4];
static char fired[64]; /* the owners that fired, in order */

static void note(struct tq_net *of, void *owner, uint64_t now)
{
	(void)of;
	(void)now;
	strcat(fired, owner);
}

/* Notes the owner, and sets its timer again for now. */
static void note_again(struct tq_net *of, void *owner, uint64_t now)
{
	note(of, owner, now);
	tq_timer_arm(of, &timers[0], now, note, owner);
}

static void stop_other(struct tq_net *of, void *owner, uint64_t now)
{
	note(of, owner, now);
	tq_timer_stop(of, &timers[1]);
}

/* Returns true if a poll fires the timers of these owners, and no others. */
static int polls(const char *wanted)
{
	*fired = '\0';
	tq_timers_poll(&net);
	return !strcmp(fired, wanted);
}

/* Returns a due time that is past, but n ns later than the last poll. */
static uint64_t past(unsigned n)
{
	return net.timers.polled + n;
}

int main(void)
{
	unit_check("timers", "none is due", polls("") && tq_timers_next(&net) == UINT64_MAX);
	tq_timer_arm(&net, &timers[0], past(30), note, "c");
	tq_timer_arm(&net, &timers[1], past(10), note, "a");
	tq_timer_arm(&net, &timers[2], past(20), note, "b");
	tq_timer_arm(&net, &timers[3], FAR, note, "never");
	unit_check("timers", "one is due", tq_timers_next(&net) == 0);
	unit_check("timers", "in their order", polls("abc"));
	unit_check("timers", "once", polls(""));
	unit_check("timers", "the next is due later",
		   tq_timers_next(&net) > 0 && tq_timers_next(&net) < UINT64_MAX);
	tq_timer_arm(&net, &timers[3], past(1), note, "moved");
	unit_check("timers", "moved", polls("moved") && polls(""));
	tq_timer_arm(&net, &timers[0], past(1), note, "stopped");
	tq_timer_stop(&net, &timers[0]);
	tq_timer_stop(&net, &timers[0]);
	unit_check("timers", "stopped", polls("") && tq_timers_next(&net) == UINT64_MAX);
	tq_timer_arm(&net, &timers[0], past(1), note_again, "again ");
	unit_check("timers", "again, at the next poll",
		   polls("again ") && polls("again ") && polls(""));
	tq_timer_arm(&net, &timers[0], past(1), stop_other, "a");
	tq_timer_arm(&net, &timers[1], past(2), note, "b");
	unit_check("timers", "stopped by one that fires", polls("a") && polls(""));
	return unit_status();
}
