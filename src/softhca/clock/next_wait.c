/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_wait.c - waits for descriptors, with timeouts in virtual time. A wait that neither a timeout
 * nor a verbs event can end is in the kernel, without the turn. Any other wait is in virtual time:
 * verbs events end it at their time, and next_watch.c when another descriptor has something.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#include "next.h"
#include "next_times.h"
#include "next_watch.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                    \
	FN(int, poll, (struct pollfd * fds, nfds_t count, int ms))                       \
	FN(int, ppoll,                                                                   \
	   (struct pollfd * fds, nfds_t count, const struct timespec *timeout,           \
	    const sigset_t *mask))                                                       \
	FN(int, select,                                                                  \
	   (int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,              \
	    struct timeval *timeout))                                                    \
	FN(int, pselect,                                                                 \
	   (int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,              \
	    const struct timespec *timeout, const sigset_t *mask))                       \
	FN(int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms))       \
	FN(int, epoll_pwait,                                                             \
	   (int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask))  \
	FN(int, epoll_pwait2,                                                            \
	   (int fd, struct epoll_event *events, int max, const struct timespec *timeout, \
	    const sigset_t *mask))

NEXT_FUNCTIONS(FUNCTIONS)

/* One wait. `look` looks at the descriptors without waiting, and returns what the program's call
 * returns. */
struct wait {
	int (*look)(struct wait *wait);
	const struct pollfd *fds; /* to wait for */
	nfds_t count;
	const sigset_t *mask;
	bool nested; /* a descriptor is an epoll set: what is in it isn't known */
	void *args;
};

static bool only_channels(const struct wait *wait)
{
	for (nfds_t i = 0; i < wait->count; i++)
		if (wait->fds[i].fd >= 0 && !shca_program_is_channel(wait->fds[i].fd))
			return false;
	return !wait->nested;
}

static bool any_channel(const struct wait *wait)
{
	for (nfds_t i = 0; i < wait->count; i++)
		if (shca_program_is_channel(wait->fds[i].fd))
			return true;
	return wait->nested;
}

/* Waits in the kernel until a descriptor has something or a signal comes. */
static int wait_in_world(const struct wait *wait)
{
	struct pollfd *fds = malloc((wait->count + 1) * sizeof(*fds));
	int rc, error;

	if (!fds)
		return -1;
	if (wait->count)
		memcpy(fds, wait->fds, wait->count * sizeof(*fds));
	shca_program_out();
	rc = NEXT(ppoll)(fds, wait->count, NULL, wait->mask);
	error = errno;
	shca_program_back();
	free(fds);
	errno = error;
	return rc;
}

/* Waits in virtual time until `until`, or until a descriptor has something. */
static void wait_in_turn(const struct wait *wait, uint64_t until)
{
	bool world = !only_channels(wait);
	sigset_t old;
	int watch = -1;

	if (world) {
		shca_program_watch(false);
		watch = shca_watch(wait->fds, wait->count);
		if (watch < 0)
			shca_program_watch(true);
	}
	if (wait->mask)
		pthread_sigmask(SIG_SETMASK, wait->mask, &old);
	shca_program_sleep(until, true);
	if (wait->mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	shca_unwatch(watch);
}

/* Looks before a wait, which events of the channels among the descriptors will end. */
static int look_first(struct wait *wait, bool events)
{
	if (events)
		shca_program_expect_events(true);
	return wait->look(wait);
}

static int wait_for(struct wait *wait, uint64_t timeout)
{
	bool events = timeout && any_channel(wait);
	uint64_t until;
	int rc, error;

	if (!timeout && shca_program_try_free_yield())
		return wait->look(wait);
	shca_program_enter();
	shca_program_listen(SHCA_HANDLER_ANY);
	rc = look_first(wait, events);
	until = shca_after(shca_program_now(), timeout);
	if (!rc && !timeout)
		shca_program_looked();
	while (!rc && timeout && (until == SHCA_FOREVER || shca_program_now() < until)) {
		if (until == SHCA_FOREVER && !events)
			rc = wait_in_world(wait);
		else
			wait_in_turn(wait, until);
		if (rc >= 0)
			rc = look_first(wait, events);
		if (!rc && shca_program_heard()) {
			errno = EINTR;
			rc = -1;
		}
	}
	error = errno;
	if (events)
		shca_program_expect_events(false);
	shca_program_listen(0);
	shca_program_leave();
	errno = error;
	return rc;
}

/* Returns true unless the kernel refuses the timeout, because it is negative or no time. */
static bool is_timeout(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && shca_is_timespec(timeout));
}

static uint64_t ns_of_ms(int ms)
{
	return ms < 0 ? SHCA_FOREVER : (uint64_t)ms * 1000000;
}

static uint64_t ns_of_timespec(const struct timespec *timeout)
{
	return timeout ? shca_ns(timeout) : SHCA_FOREVER;
}

/* ---------------------------------------------------------------- poll */

static int look_poll(struct wait *wait)
{
	const struct timespec zero = {0, 0};

	return NEXT(ppoll)(wait->args, wait->count, &zero, wait->mask);
}

static int clocked_poll(struct pollfd *fds, nfds_t count, uint64_t timeout, const sigset_t *mask)
{
	struct wait wait = {
		.look = look_poll, .fds = fds, .count = count, .mask = mask, .args = fds};

	return wait_for(&wait, timeout);
}

int shca_poll(struct pollfd *fds, nfds_t count, int ms)
{
	if (!shca_program_join())
		return NEXT(poll)(fds, count, ms);
	return clocked_poll(fds, count, ns_of_ms(ms), NULL);
}

int shca_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	       const sigset_t *mask)
{
	if (!shca_program_join() || !is_timeout(timeout))
		return NEXT(ppoll)(fds, count, timeout, mask);
	return clocked_poll(fds, count, ns_of_timespec(timeout), mask);
}

/* ---------------------------------------------------------------- select */

/* Programs may pass sets that are smaller or larger than fd_set: only the words with bits below
 * `nfds` are theirs. */
struct sets {
	int nfds;
	size_t bytes; /* of these words */
	fd_set *set[3];
	fd_mask *asked[3];
};

/* Descriptors that are asked for, and words of three sets, for which there is room on the stack.
 * Choices: few programs wait for more descriptors; all sets of type fd_set have these words. */
enum { SOME_FDS = 32, SOME_WORDS = 3 * FD_SETSIZE / NFDBITS };

static int look_select(struct wait *wait)
{
	const struct timespec zero = {0, 0};
	struct sets *sets = wait->args;

	for (int i = 0; i < 3; i++)
		if (sets->set[i])
			memcpy(sets->set[i], sets->asked[i], sets->bytes);
	return NEXT(pselect)(sets->nfds, sets->set[0], sets->set[1], sets->set[2], &zero,
			     wait->mask);
}

/* Returns the events that a program waits for on a descriptor. */
static short wanted(const struct sets *sets, int fd)
{
	static const short events[3] = {POLLIN, POLLOUT, POLLPRI};
	short want = 0;

	for (int i = 0; i < 3; i++)
		if (sets->set[i] && (sets->asked[i][fd / NFDBITS] >> fd % NFDBITS & 1))
			want = (short)(want | events[i]);
	return want;
}

static int select_with(struct sets *sets, uint64_t timeout, const sigset_t *mask,
		       struct pollfd *fds, fd_mask *words)
{
	struct wait wait = {.look = look_select, .fds = fds, .mask = mask, .args = sets};

	for (int i = 0; i < 3; i++) {
		sets->asked[i] = words + (size_t)i * sets->bytes / sizeof(*words);
		if (sets->set[i])
			memcpy(sets->asked[i], sets->set[i], sets->bytes);
	}
	for (int fd = 0; fd < sets->nfds; fd++) {
		short want = wanted(sets, fd);

		if (want)
			fds[wait.count++] = (struct pollfd){.fd = fd, .events = want};
	}
	return wait_for(&wait, timeout);
}

/* Returns the number of descriptors that the kernel looks at: not more than a process may have. */
static int count_fds(int nfds)
{
	struct rlimit most;

	return nfds <= FD_SETSIZE || getrlimit(RLIMIT_NOFILE, &most) ||
			       (rlim_t)nfds <= most.rlim_max
		       ? nfds
		       : (int)most.rlim_max;
}

/* Returns the number of descriptors that a program waits for. */
static int count_wanted(const struct sets *sets)
{
	int bits = 0;

	for (int i = 0; i < 3; i++)
		for (size_t w = 0; sets->set[i] && w < sets->bytes / sizeof(fd_mask); w++)
			bits += __builtin_popcountl((unsigned long)__FDS_BITS(sets->set[i])[w]);
	return bits < sets->nfds ? bits : sets->nfds;
}

static int clocked_select(struct sets *sets, uint64_t timeout, const sigset_t *mask)
{
	struct pollfd some_fds[SOME_FDS], *fds = some_fds;
	fd_mask some_words[SOME_WORDS], *words = some_words;
	int rc = -1, error, wanted_fds;

	sets->nfds = count_fds(sets->nfds);
	sets->bytes = ((size_t)sets->nfds + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
	wanted_fds = count_wanted(sets);
	if (wanted_fds > SOME_FDS)
		fds = calloc((size_t)wanted_fds, sizeof(*fds));
	if (3 * sets->bytes > sizeof(some_words))
		words = calloc(3, sets->bytes);
	if (fds && words)
		rc = select_with(sets, timeout, mask, fds, words);
	else
		errno = ENOMEM;
	error = errno;
	if (fds != some_fds)
		free(fds);
	if (words != some_words)
		free(words);
	errno = error;
	return rc;
}

int shca_select(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		struct timeval *timeout)
{
	struct sets sets = {.nfds = nfds, .set = {readfds, writefds, exceptfds}};
	uint64_t ns = SHCA_FOREVER;

	if (!shca_program_join() || nfds < 0 ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return NEXT(select)(nfds, readfds, writefds, exceptfds, timeout);
	if (timeout)
		ns = shca_after(shca_ns(&(struct timespec){timeout->tv_sec, 0}),
				(uint64_t)timeout->tv_usec * 1000);
	return clocked_select(&sets, ns, NULL);
}

int shca_pselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		 const struct timespec *timeout, const sigset_t *mask)
{
	struct sets sets = {.nfds = nfds, .set = {readfds, writefds, exceptfds}};

	if (!shca_program_join() || nfds < 0 || !is_timeout(timeout))
		return NEXT(pselect)(nfds, readfds, writefds, exceptfds, timeout, mask);
	return clocked_select(&sets, ns_of_timespec(timeout), mask);
}

/* ---------------------------------------------------------------- epoll */

struct set {
	int fd, max;
	struct epoll_event *events;
};

static int look_epoll(struct wait *wait)
{
	const struct set *set = wait->args;

	return NEXT(epoll_pwait)(set->fd, set->events, set->max, 0, wait->mask);
}

static int clocked_epoll(struct set *set, uint64_t timeout, const sigset_t *mask)
{
	struct pollfd fd = {.fd = set->fd, .events = POLLIN};
	struct wait wait = {.look = look_epoll,
			    .fds = &fd,
			    .count = 1,
			    .mask = mask,
			    .nested = true,
			    .args = set};

	return wait_for(&wait, timeout);
}

int shca_epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	struct set set = {fd, max, events};

	if (!shca_program_join())
		return NEXT(epoll_wait)(fd, events, max, ms);
	return clocked_epoll(&set, ns_of_ms(ms), NULL);
}

int shca_epoll_pwait(int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	struct set set = {fd, max, events};

	if (!shca_program_join())
		return NEXT(epoll_pwait)(fd, events, max, ms, mask);
	return clocked_epoll(&set, ns_of_ms(ms), mask);
}

int shca_epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
		      const sigset_t *mask)
{
	struct set set = {fd, max, events};

	if (!shca_program_join() || !is_timeout(timeout))
		return NEXT(epoll_pwait2)(fd, events, max, timeout, mask);
	return clocked_epoll(&set, ns_of_timespec(timeout), mask);
}
