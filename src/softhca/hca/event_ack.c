/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_ack.c - counts the events that are given and those that are acknowledged.
 */
#include "event_ack.h"

#include "clock/clock.h"

static pthread_mutex_t lookups = PTHREAD_MUTEX_INITIALIZER;

void shca_event_ack_lock(void)
{
	pthread_mutex_lock(&lookups);
}

void shca_event_ack_unlock(void)
{
	pthread_mutex_unlock(&lookups);
}

void shca_event_ack_reset(void)
{
	pthread_mutex_init(&lookups, NULL);
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

/* Waits for threads that found the object before its look-ups ended: they hold the lock until the
 * event is counted. */
static void wait_for_lookups(void)
{
	shca_event_ack_lock();
	shca_event_ack_unlock();
}

/* Waits for the condition. In virtual time another thread needs the turn to acknowledge, and no
 * thread waits for its turn with a lock. */
static void wait_for_ack(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	shca_clock_out();
	pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	shca_clock_back();
	pthread_mutex_lock(mutex);
}

void shca_event_ack_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
			 const uint32_t *given)
{
	wait_for_lookups();
	pthread_mutex_lock(mutex);
	while (*completed != *given)
		wait_for_ack(cond, mutex);
	pthread_mutex_unlock(mutex);
}
