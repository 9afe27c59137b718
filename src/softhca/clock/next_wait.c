/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_wait.c - waits for descriptors, with timeouts in virtual time. Descriptors that tell of
 * verbs events alone are waited for in virtual time; for others the thread gives its turn away and
 * waits in the kernel, by slices while it may also be called back.
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

#define FUNCTIONS(FN)                                                                       \
	FN(int, poll, (struct pollfd * fds, nfds_t n, int ms))                              \
	FN(int, ppoll,                                                                      \
	   (struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *mask)) \
	FN(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t))        \
	FN(int, pselect,                                                                    \
	   (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t,               \
	    const sigset_t *mask))                                                          \
	FN(int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms))          \
	FN(int, epoll_pwait,                                                                \
	   (int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask))     \
	FN(int, epoll_pwait2,                                                               \
	   (int fd, struct epoll_event *events, int max, const struct timespec *t,          \
	    const sigset_t *mask))

NEXT_FUNCTIONS(FUNCTIONS)

/* One wait. `look` looks at once: as the function that was called would return. */
struct wait {
	int (*look)(struct wait *w);
	const struct pollfd *fds; /* to wait for */
	nfds_t n;
	const sigset_t *mask;
	bool nested; /* a descriptor is an epoll set: what is in it isn't known */
	void *args;
};

static bool only_channels(const struct wait *w)
{
	for (nfds_t i = 0; i < w->n; i++)
		if (w->fds[i].fd >= 0 && !shca_program_is_channel(w->fds[i].fd))
			return false;
	return !w->nested;
}

static bool any_channel(const struct wait *w)
{
	for (nfds_t i = 0; i < w->n; i++)
		if (shca_program_is_channel(w->fds[i].fd))
			return true;
	return w->nested;
}

/* Waits in the kernel until a descriptor has something or a signal comes. */
static int wait_in_world(const struct wait *w)
{
	struct pollfd *fds = malloc((w->n + 1) * sizeof(*fds));
	int r, error;

	if (!fds)
		return -1;
	if (w->n)
		memcpy(fds, w->fds, w->n * sizeof(*fds));
	shca_program_out();
	r = NEXT(ppoll)(fds, w->n, NULL, w->mask);
	error = errno;
	shca_program_back();
	free(fds);
	errno = error;
	return r;
}

/* Waits in virtual time until `until`, or until a descriptor has something. */
static void wait_in_turn(const struct wait *w, uint64_t until)
{
	bool world = !only_channels(w);
	sigset_t old;
	int watch = -1;

	if (world) {
		shca_program_watches(false);
		watch = shca_watch(w->fds, w->n);
		if (watch < 0)
			shca_program_watches(true);
	}
	if (w->mask)
		pthread_sigmask(SIG_SETMASK, w->mask, &old);
	shca_program_sleep(until, true);
	if (w->mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	shca_unwatch(watch);
}

static int wait_for(struct wait *w, uint64_t timeout)
{
	uint64_t until;
	int r, error;

	shca_program_enter();
	shca_program_listens(SHCA_HEARD_ANY);
	r = w->look(w);
	until = shca_after(shca_program_now(), timeout);
	if (!r && !timeout)
		shca_program_looked();
	while (!r && timeout && (until == SHCA_FOREVER || shca_program_now() < until)) {
		if (until == SHCA_FOREVER && !any_channel(w))
			r = wait_in_world(w);
		else
			wait_in_turn(w, until);
		if (r >= 0)
			r = w->look(w);
		if (!r && shca_program_heard()) {
			errno = EINTR;
			r = -1;
		}
	}
	error = errno;
	shca_program_listens(0);
	shca_program_leave();
	errno = error;
	return r;
}

/* Returns true if the kernel takes it, which refuses negative times. */
static bool is_timeout(const struct timespec *t)
{
	return !t || (t->tv_sec >= 0 && shca_is_timespec(t));
}

static uint64_t ns_of_ms(int ms)
{
	return ms < 0 ? SHCA_FOREVER : (uint64_t)ms * 1000000;
}

static uint64_t ns_of_timespec(const struct timespec *t)
{
	return t ? shca_ns(t) : SHCA_FOREVER;
}

/* ---------------------------------------------------------------- poll */

static int look_poll(struct wait *w)
{
	const struct timespec zero = {0, 0};

	return NEXT(ppoll)(w->args, w->n, &zero, w->mask);
}

static int clocked_poll(struct pollfd *fds, nfds_t n, uint64_t timeout, const sigset_t *mask)
{
	struct wait w = {.look = look_poll, .fds = fds, .n = n, .mask = mask, .args = fds};

	return wait_for(&w, timeout);
}

int shca_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (!shca_program_is_clocked())
		return NEXT(poll)(fds, n, ms);
	return clocked_poll(fds, n, ns_of_ms(ms), NULL);
}

int shca_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	if (!shca_program_is_clocked() || !is_timeout(t))
		return NEXT(ppoll)(fds, n, t, mask);
	return clocked_poll(fds, n, ns_of_timespec(t), mask);
}

/* ---------------------------------------------------------------- select */

/* Programs may pass sets that are smaller or larger than fd_set: only the words with bits below `n`
 * are theirs. */
struct sets {
	int n;
	size_t bytes; /* of these words */
	fd_set *set[3];
	fd_mask *asked[3];
};

/* Descriptors, and words of three sets, for which there is room without an allocation. */
enum { SOME_FDS = FD_SETSIZE, SOME_WORDS = 3 * FD_SETSIZE / NFDBITS };

static int look_select(struct wait *w)
{
	const struct timespec zero = {0, 0};
	struct sets *s = w->args;

	for (int i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->set[i], s->asked[i], s->bytes);
	return NEXT(pselect)(s->n, s->set[0], s->set[1], s->set[2], &zero, w->mask);
}

/* Returns the events that a program waits for on a descriptor. */
static short wanted(const struct sets *s, int fd)
{
	static const short events[3] = {POLLIN, POLLOUT, POLLPRI};
	short want = 0;

	for (int i = 0; i < 3; i++)
		if (s->set[i] && (s->asked[i][fd / NFDBITS] >> fd % NFDBITS & 1))
			want = (short)(want | events[i]);
	return want;
}

static int select_with(struct sets *s, uint64_t timeout, const sigset_t *mask, struct pollfd *fds,
		       fd_mask *words)
{
	struct wait w = {.look = look_select, .fds = fds, .mask = mask, .args = s};

	for (int i = 0; i < 3; i++) {
		s->asked[i] = words + (size_t)i * s->bytes / sizeof(*words);
		if (s->set[i])
			memcpy(s->asked[i], s->set[i], s->bytes);
	}
	for (int fd = 0; fd < s->n; fd++) {
		short want = wanted(s, fd);

		if (want)
			fds[w.n++] = (struct pollfd){.fd = fd, .events = want};
	}
	return wait_for(&w, timeout);
}

/* Returns the number of descriptors that the kernel looks at: not more than a process may have. */
static int count_fds(int n)
{
	struct rlimit most;

	return n <= SOME_FDS || getrlimit(RLIMIT_NOFILE, &most) || (rlim_t)n <= most.rlim_max
		       ? n
		       : (int)most.rlim_max;
}

static int clocked_select(struct sets *s, uint64_t timeout, const sigset_t *mask)
{
	struct pollfd some_fds[SOME_FDS], *fds = some_fds;
	fd_mask some_words[SOME_WORDS], *words = some_words;
	int r = -1, error;

	s->n = count_fds(s->n);
	s->bytes = ((size_t)s->n + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
	if (s->n > SOME_FDS) {
		fds = calloc((size_t)s->n, sizeof(*fds));
		words = calloc(3, s->bytes);
	}
	if (fds && words)
		r = select_with(s, timeout, mask, fds, words);
	else
		errno = ENOMEM;
	error = errno;
	if (fds != some_fds)
		free(fds);
	if (words != some_words)
		free(words);
	errno = error;
	return r;
}

int shca_select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t)
{
	struct sets s = {.n = n, .set = {r, w, e}};
	uint64_t timeout = SHCA_FOREVER;

	if (!shca_program_is_clocked() || n < 0 || (t && (t->tv_sec < 0 || t->tv_usec < 0)))
		return NEXT(select)(n, r, w, e, t);
	if (t)
		timeout = shca_after(shca_ns(&(struct timespec){t->tv_sec, 0}),
				     (uint64_t)t->tv_usec * 1000);
	return clocked_select(&s, timeout, NULL);
}

int shca_pselect(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t,
		 const sigset_t *mask)
{
	struct sets s = {.n = n, .set = {r, w, e}};

	if (!shca_program_is_clocked() || n < 0 || !is_timeout(t))
		return NEXT(pselect)(n, r, w, e, t, mask);
	return clocked_select(&s, ns_of_timespec(t), mask);
}

/* ---------------------------------------------------------------- epoll */

struct set {
	int fd, max;
	struct epoll_event *events;
};

static int look_epoll(struct wait *w)
{
	const struct set *s = w->args;

	return NEXT(epoll_pwait)(s->fd, s->events, s->max, 0, w->mask);
}

static int clocked_epoll(struct set *s, uint64_t timeout, const sigset_t *mask)
{
	struct pollfd fd = {.fd = s->fd, .events = POLLIN};
	struct wait w = {
		.look = look_epoll, .fds = &fd, .n = 1, .mask = mask, .nested = true, .args = s};

	return wait_for(&w, timeout);
}

int shca_epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	struct set s = {fd, max, events};

	if (!shca_program_is_clocked())
		return NEXT(epoll_wait)(fd, events, max, ms);
	return clocked_epoll(&s, ns_of_ms(ms), NULL);
}

int shca_epoll_pwait(int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	struct set s = {fd, max, events};

	if (!shca_program_is_clocked())
		return NEXT(epoll_pwait)(fd, events, max, ms, mask);
	return clocked_epoll(&s, ns_of_ms(ms), mask);
}

int shca_epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *t,
		      const sigset_t *mask)
{
	struct set s = {fd, max, events};

	if (!shca_program_is_clocked() || !is_timeout(t))
		return NEXT(epoll_pwait2)(fd, events, max, t, mask);
	return clocked_epoll(&s, ns_of_timespec(t), mask);
}
