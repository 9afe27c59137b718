/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runqueue.c - QPs that wait for the engine: a list of those that are ready, a heap of the others.
 */
#include "runqueue.h"

#include <sched.h>
#include <string.h>

#include "hca/queues/cq_event.h"
#include "hca/timers.h"
#include "hca/timing.h"

/*
 * `lock` protects the list, the heap, and the transitions to and from READY and TIMED. This lock is
 * an innermost one.
 */
static struct {
	/* The fields that handing a QP over needs share one cache line. */
	pthread_mutex_t lock SHCA_ALIGNED;
	struct shca_qp *first, *last; /* READY */
	_Atomic uint32_t ready;       /* length of the list */
	bool was_timer;               /* true if the QP that was taken last came from its heap */

	struct shca_timers qp_timers SHCA_ALIGNED; /* TIMED */
	_Atomic uint64_t next_timer;               /* earliest of qp_timers, UINT64_MAX = none */
	_Atomic uint32_t rnr_wakes; /* number of times that wake-ups brought RNR waits forward */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_timer = UINT64_MAX};

uint32_t shca_runqueue_rnr_wakes(void)
{
	return atomic_load_explicit(&queue.rnr_wakes, memory_order_acquire);
}

static uint64_t sooner_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t shca_runqueue_connections_due(void)
{
	uint64_t due = shca_self.proc ? atomic_load(&shca_self.proc->cm_due) : 0;

	return due ? due : UINT64_MAX;
}

uint64_t shca_runqueue_next(void)
{
	return sooner_of(sooner_of(atomic_load(&queue.next_timer), shca_cq_event_next()),
			 shca_runqueue_connections_due());
}

/* Notes when the engine has work next. Needs the lock. */
static void schedule(void)
{
	shca_timing.schedule(queue.first ? 0 : shca_runqueue_next());
}

/* Stores the time of the earliest timer. Needs the lock. */
static void note_next_timer(void)
{
	uint64_t next = shca_timers_next(&queue.qp_timers);

	if (next != atomic_load_explicit(&queue.next_timer, memory_order_relaxed))
		atomic_store(&queue.next_timer, next);
	schedule();
}

/* ---------------------------------------------------------------- the list of ready QPs */

static void list_add(struct shca_qp *qp)
{
	qp->ready_next = NULL;
	qp->ready_prev = queue.last;
	if (queue.last)
		queue.last->ready_next = qp;
	else
		queue.first = qp;
	queue.last = qp;
	atomic_fetch_add(&queue.ready, 1);
}

static void list_del(struct shca_qp *qp)
{
	if (qp->ready_prev)
		qp->ready_prev->ready_next = qp->ready_next;
	else
		queue.first = qp->ready_next;
	if (qp->ready_next)
		qp->ready_next->ready_prev = qp->ready_prev;
	else
		queue.last = qp->ready_prev;
	atomic_fetch_sub_explicit(&queue.ready, 1, memory_order_relaxed);
}

void shca_runqueue_add(struct shca_qp *qp)
{
	pthread_mutex_lock(&queue.lock);
	shca_sched_set(qp, SHCA_SCHED_READY);
	list_add(qp);
	schedule();
	pthread_mutex_unlock(&queue.lock);
	shca_timing.wake();
}

/* Returns when a QP that waits for a receive tries again if one is posted now: at the next end of
 * its RNR timer, or 0 for at once. */
static uint64_t rnr_due(const struct shca_qp *qp)
{
	uint64_t waited = shca_now() - qp->cur.rnr_since;

	if (shca_opt(&shca_self.fabric, SHCA_O_RNR_WAKE))
		return 0;
	return qp->cur.rnr_since + (waited / qp->cur.rnr_period + 1) * qp->cur.rnr_period;
}

void shca_runqueue_add_at(struct shca_qp *qp, uint64_t when, bool rnr)
{
	bool ok, sooner;

	pthread_mutex_lock(&queue.lock);
	qp->rnr_wait = rnr;
	/* A wake-up since the last look for a receive would have come too early for this wait. */
	if (rnr && qp->rnr_seen != atomic_load(&queue.rnr_wakes))
		when = sooner_of(when, rnr_due(qp));
	sooner = when < atomic_load_explicit(&queue.next_timer, memory_order_relaxed);
	qp->timer.when = when;
	ok = shca_timers_add(&queue.qp_timers, &qp->timer);
	shca_sched_set(qp, ok ? SHCA_SCHED_TIMED : SHCA_SCHED_READY);
	if (!ok) /* Without memory for the heap, try the QP again at once. */
		list_add(qp);
	note_next_timer();
	pthread_mutex_unlock(&queue.lock);
	if (sooner || !ok)
		shca_timing.wake();
}

void shca_runqueue_remove(struct shca_qp *qp)
{
	for (;;) {
		bool idle;

		pthread_mutex_lock(&qp->sq_lock);
		pthread_mutex_lock(&queue.lock);
		if (qp->sched == SHCA_SCHED_READY)
			list_del(qp);
		else if (qp->sched == SHCA_SCHED_TIMED)
			shca_timers_del(&queue.qp_timers, &qp->timer);
		if (qp->sched != SHCA_SCHED_RUNNING)
			shca_sched_set(qp, SHCA_SCHED_IDLE);
		idle = qp->sched == SHCA_SCHED_IDLE;
		note_next_timer();
		pthread_mutex_unlock(&queue.lock);
		pthread_mutex_unlock(&qp->sq_lock);
		if (idle)
			return;
		sched_yield();
	}
}

static struct shca_qp *qp_of(struct shca_timer *timer)
{
	return (struct shca_qp *)(void *)((char *)timer - offsetof(struct shca_qp, timer));
}

/* In turn one whose timer is due and one that is ready. If many QPs wait for receives, some timer
 * is always due, and if many send, some QP is always ready; neither kind may starve the other. */
struct shca_qp *shca_runqueue_take(uint64_t now)
{
	struct shca_timer *timer = NULL;
	struct shca_qp *qp = NULL;

	pthread_mutex_lock(&queue.lock);
	if (!queue.was_timer || !queue.first)
		timer = shca_timers_pop(&queue.qp_timers, now);
	if (timer) {
		qp = qp_of(timer);
		note_next_timer();
	} else if (queue.first) {
		qp = queue.first;
		list_del(qp);
		schedule();
	}
	queue.was_timer = timer != NULL;
	if (qp)
		shca_sched_set(qp, SHCA_SCHED_RUNNING);
	pthread_mutex_unlock(&queue.lock);
	return qp;
}

void shca_runqueue_end_rnr_waits(void)
{
	pthread_mutex_lock(&queue.lock);
	for (uint32_t i = 0; i < queue.qp_timers.n; i++) {
		struct shca_timer *timer = queue.qp_timers.heap[i];

		if (qp_of(timer)->rnr_wait)
			timer->when = sooner_of(timer->when, rnr_due(qp_of(timer)));
	}
	shca_timers_rebuild(&queue.qp_timers);
	atomic_fetch_add(&queue.rnr_wakes, 1);
	note_next_timer();
	pthread_mutex_unlock(&queue.lock);
}

bool shca_runqueue_has_ready(void)
{
	return atomic_load(&queue.ready);
}

void shca_runqueue_schedule(void)
{
	pthread_mutex_lock(&queue.lock);
	schedule();
	pthread_mutex_unlock(&queue.lock);
}

void shca_runqueue_reset(void)
{
	memset(&queue, 0, sizeof(queue));
	pthread_mutex_init(&queue.lock, NULL);
	atomic_store(&queue.next_timer, UINT64_MAX);
}
