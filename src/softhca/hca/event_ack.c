/* SPDX-License-Identifier: BSD-3-Clause */
/* event_ack.c - counts the events that are given and those that are acknowledged. */
#include "event_ack.h"

#include "clock/clock.h"
#include "hca/queues/qp.h"

static pthread_mutex_t handout = PTHREAD_MUTEX_INITIALIZER;

void shca_event_ack_lock(void)
{
	pthread_mutex_lock(&handout);
}

void shca_event_ack_unlock(void)
{
	pthread_mutex_unlock(&handout);
}

void shca_event_ack_reset(void)
{
	pthread_mutex_init(&handout, NULL);
}

void shca_event_ack_expect(pthread_mutex_t *mutex, uint32_t *given)
{
	pthread_mutex_lock(mutex);
	*given += 1;
	pthread_mutex_unlock(mutex);
}

void shca_event_ack_done(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
			 uint32_t n)
{
	pthread_mutex_lock(mutex);
	*completed += n;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

/* Who found the object before its look-ups ended holds the lock until the event is counted. */
static void wait_for_finders(void)
{
	shca_event_ack_lock();
	shca_event_ack_unlock();
}

/* In virtual time another thread needs the turn to acknowledge. */
static void wait_for_ack(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (shca_clk)
		shca_clock_out();
	pthread_cond_wait(cond, mutex);
	if (shca_clk) {
		pthread_mutex_unlock(mutex);
		shca_clock_back();
		pthread_mutex_lock(mutex);
	}
}

void shca_wait_qp_acks(struct shca_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;

	wait_for_finders();
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != qp->events_given)
		wait_for_ack(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}

void shca_wait_srq_acks(struct shca_srq *srq)
{
	struct ibv_srq *ibv = &srq->ibv;

	wait_for_finders();
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != srq->events_given)
		wait_for_ack(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}

void shca_wait_cq_acks(struct shca_cq *cq)
{
	struct ibv_cq_ex *ibv = &cq->ibv;

	wait_for_finders();
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->comp_events_given ||
	       ibv->async_events_completed != cq->async_events_given)
		wait_for_ack(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}
