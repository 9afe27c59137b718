/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_watch.c - a thread of each process that sleeps until a descriptor has something for which
 * another thread waits in virtual time. Without this thread all threads that wait would have to
 * look whenever the real world may have done something.
 */
#define _GNU_SOURCE 1
#include "next_watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fabric/thread.h"
#include "program.h"

static struct {
	pthread_mutex_t lock;
	int all; /* the set of all waits; -1: there is no thread yet */
} watcher = {PTHREAD_MUTEX_INITIALIZER, -1};

/* Runs without a clock: the functions that it calls are the C library's. */
static void *watcher_main(void *arg)
{
	struct epoll_event events[16];
	int all = (int)(intptr_t)arg, count;

	prctl(PR_SET_NAME, "softhca-watcher");
	/* The thread that made this one may trap the TSC. */
	shca_program_untrap();
	do {
		count = epoll_wait(all, events, sizeof(events) / sizeof(*events), -1);
		for (int i = 0; i < count; i++)
			shca_program_look(events[i].data.u32);
	} while (count >= 0 || errno == EINTR);
	return NULL;
}

/* A child has no such thread. */
static void forget(void)
{
	pthread_mutex_init(&watcher.lock, NULL);
	if (watcher.all >= 0)
		close(watcher.all);
	watcher.all = -1;
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, forget);
}

static void start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	watcher.all = epoll_create1(EPOLL_CLOEXEC);
	if (watcher.all < 0)
		return;
	pthread_once(&once, register_fork);
	/* Keeps the program's signals away from this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	shca_thread_attr(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, watcher_main, (void *)(intptr_t)watcher.all)) {
		close(watcher.all);
		watcher.all = -1;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static int set_of_all(void)
{
	int all;

	pthread_mutex_lock(&watcher.lock);
	if (watcher.all < 0)
		start();
	all = watcher.all;
	pthread_mutex_unlock(&watcher.lock);
	return all;
}

int shca_watch(const struct pollfd *fds, nfds_t count)
{
	struct epoll_event mine = {.events = EPOLLIN | EPOLLONESHOT,
				   .data.u32 = shca_program_actor()};
	int all = set_of_all(), set = all < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	bool ok = set >= 0;

	for (nfds_t i = 0; ok && i < count; i++) {
		/* The bits of poll() are those of epoll. */
		struct epoll_event event = {.events = (uint32_t)(unsigned short)fds[i].events};

		/* Events of channels make the thread due at their time, and a late look at the
		 * descriptor would at another. */
		if (fds[i].fd < 0 || shca_program_is_channel(fds[i].fd))
			continue;
		ok = !epoll_ctl(set, EPOLL_CTL_ADD, fds[i].fd, &event);
	}
	if (ok && !epoll_ctl(all, EPOLL_CTL_ADD, set, &mine))
		return set;
	shca_unwatch(set);
	return -1;
}

void shca_unwatch(int watch)
{
	if (watch >= 0)
		close(watch);
}
