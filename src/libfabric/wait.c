/* SPDX-License-Identifier: BSD-3-Clause */
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

int tf_wait_init(struct tf_wait *wait, enum fi_wait_obj kind)
{
	wait->kind = kind;
	wait->fd = -1;
	wait->wakes = 0;
	atomic_init(&wait->armed, false);
	atomic_init(&wait->sleepers, 0);
	switch (kind) {
	case FI_WAIT_NONE:
		break;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		wait->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (wait->fd < 0)
			return -errno;
		break;
	default:
		return -FI_ENOSYS;
	}
	pthread_mutex_init(&wait->lock, NULL);
	pthread_cond_init(&wait->woken, NULL);
	return 0;
}

void tf_wait_fini(struct tf_wait *wait)
{
	if (wait->fd >= 0)
		close(wait->fd);
	pthread_cond_destroy(&wait->woken);
	pthread_mutex_destroy(&wait->lock);
}

void tf_wait_wake(struct tf_wait *wait)
{
	const uint64_t one = 1;

	if (wait->fd < 0)
		return;
	/* The event comes before these looks, and a sleeper's look for events after it has entered
	 * or armed. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&wait->sleepers, memory_order_relaxed)) {
		pthread_mutex_lock(&wait->lock);
		wait->wakes++;
		pthread_cond_broadcast(&wait->woken);
		pthread_mutex_unlock(&wait->lock);
	}
	if (!atomic_load_explicit(&wait->armed, memory_order_relaxed) ||
	    !atomic_exchange(&wait->armed, false))
		return;
	while (write(wait->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void tf_wait_arm(struct tf_wait *wait)
{
	uint64_t n;

	if (wait->fd < 0)
		return;
	while (read(wait->fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
	atomic_store(&wait->armed, true);
	atomic_thread_fence(memory_order_seq_cst);
}

uint64_t tf_wait_enter(struct tf_wait *wait)
{
	uint64_t seen;

	atomic_fetch_add(&wait->sleepers, 1);
	atomic_thread_fence(memory_order_seq_cst);
	pthread_mutex_lock(&wait->lock);
	seen = wait->wakes;
	pthread_mutex_unlock(&wait->lock);
	return seen;
}

void tf_wait_sleep(struct tf_wait *wait, uint64_t seen, int timeout)
{
	struct timespec due;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &due);
	if (timeout > 0) {
		due.tv_sec += timeout / 1000;
		due.tv_nsec += timeout % 1000 * 1000000L;
		due.tv_sec += due.tv_nsec / 1000000000;
		due.tv_nsec %= 1000000000;
	}
	pthread_mutex_lock(&wait->lock);
	while (wait->wakes == seen && !rc)
		rc = timeout < 0 ? pthread_cond_wait(&wait->woken, &wait->lock)
				 : pthread_cond_clockwait(&wait->woken, &wait->lock,
							  CLOCK_MONOTONIC, &due);
	pthread_mutex_unlock(&wait->lock);
}

void tf_wait_leave(struct tf_wait *wait)
{
	atomic_fetch_sub(&wait->sleepers, 1);
}

int tf_wait_control(const struct tf_wait *wait, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (wait->fd < 0 || !arg)
			return -FI_EINVAL;
		*(int *)arg = wait->fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = wait->kind;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

long long tf_wait_until(int timeout)
{
	return timeout < 0 ? -1 : now_ms() + timeout;
}

int tf_wait_left(long long until)
{
	long long left;

	if (until < 0)
		return -1;
	left = until - now_ms();
	return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}
