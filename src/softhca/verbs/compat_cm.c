/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_cm.c - /dev/infiniband/rdma_cm, the device of librdmacm. A descriptor of it is a FIFO that
 * can be read while events are there, so the kernel itself answers poll(), epoll and fcntl().
 * Commands are written, so write() comes through here; close() and what duplicates descriptors,
 * because the last close() destroys what the file has; fstat() must say that the FIFO is a device.
 * A program that doesn't open the device pays for a look at a counter.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "clock/clock.h"
#include "clock/next.h"
#include "cm/command.h"
#include "cm/events.h"
#include "cm/life.h"
#include "fabric/cancel.h"
#include "fabric/event.h"
#include "hca/timing.h"

#define DEVICE       "/dev/infiniband/rdma_cm"
#define DEVICE_MODE  0666
#define DEVICE_MAJOR 10 /* of Linux's miscellaneous devices, whose minor numbers vary */
#define DEVICE_MINOR 122

/* Descriptors with higher numbers can't be channels: a choice, which is 1 MiB of zeroed memory. */
#define MAX_FDS 65536

#define FUNCTIONS(FN)                                             \
	FN(ssize_t, write, (int fd, const void *buf, size_t len)) \
	FN(int, close, (int fd))                                  \
	FN(int, dup, (int fd))                                    \
	FN(int, dup2, (int fd, int at))                           \
	FN(int, dup3, (int fd, int at, int flags))                \
	FN(int, fcntl, (int fd, int cmd, ...))                    \
	FN(int, fcntl64, (int fd, int cmd, ...))                  \
	FN(int, fstat, (int fd, struct stat *st))                 \
	FN(int, fstat64, (int fd, struct stat *st))               \
	FN(int, socket, (int domain, int type, int protocol))

NEXT_FUNCTIONS(FUNCTIONS)

/* A descriptor of a channel. */
struct descriptor {
	_Atomic uint32_t channel; /* + 1; 0: none */
	uint32_t fifo;
	pid_t owner; /* whose channel it is; a forked or vforked child is another process */
	ino_t ino;
};

/* The descriptors of open channels. A program may have closed a descriptor in another way, and use
 * its number for something else, so the FIFO's inode is remembered. The lock is for changes. */
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int descriptors;
static int highest; /* descriptor that was a channel's */
static struct descriptor opened[MAX_FDS];

/* Returns the channel of a descriptor, as `opened` has it. Keeps errno. */
static inline uint32_t channel_at(int fd)
{
	if (__builtin_expect(!atomic_load_explicit(&descriptors, memory_order_relaxed), 1) ||
	    fd < 0 || fd >= MAX_FDS)
		return 0;
	return atomic_load_explicit(&opened[fd].channel, memory_order_acquire);
}

/* Returns true if the descriptor is still the FIFO that was opened. */
static bool is_same(int fd)
{
	int error = errno;
	struct stat st = {0};
	bool same = !NEXT(fstat)(fd, &st) && S_ISFIFO(st.st_mode) && st.st_ino == opened[fd].ino;

	errno = error;
	return same;
}

bool shca_compat_cm_is(const char *path)
{
	const char *fabric;

	if (!path || strcmp(path, DEVICE) != 0)
		return false;
	fabric = getenv(SHCA_ENV_FABRIC);
	return fabric && *fabric;
}

/* In a forked child, a lock held by another thread would never be released. */
static void unlock_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, unlock_in_child);
}

static bool is_own(const struct descriptor *at)
{
	return at->owner == getpid();
}

/* Notes a descriptor of a channel. The caller holds the lock. */
static void note(int fd, uint32_t channel, const struct descriptor *like)
{
	if (!opened[fd].channel)
		atomic_fetch_add(&descriptors, 1);
	if (fd > highest)
		highest = fd;
	opened[fd].fifo = like->fifo;
	opened[fd].owner = like->owner;
	opened[fd].ino = like->ino;
	atomic_store_explicit(&opened[fd].channel, channel, memory_order_release);
}

/* Forgets a descriptor of a channel. The caller holds the lock. */
static void forget(int fd)
{
	atomic_store(&opened[fd].channel, 0);
	atomic_fetch_sub(&descriptors, 1);
}

/* Returns true if an own channel has a descriptor. The caller holds the lock. */
static bool has_descriptor(uint32_t channel)
{
	for (int fd = 0; fd <= highest; fd++)
		if (opened[fd].channel == channel && is_own(&opened[fd]) && is_same(fd))
			return true;
	return false;
}

/* Makes a channel with a descriptor. Returns the descriptor or -errno. */
static int make(int flags)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	int64_t fifo, channel;
	struct descriptor made = {.owner = getpid()};
	struct stat st = {0};
	int fd, cancel;

	pthread_once(&forks_watched, watch_forks);
	fifo = shca_event_create(fabric, shca_self.slot, &fd);
	if (fifo < 0)
		return (int)fifo;
	channel = -EMFILE;
	if (fd < MAX_FDS && !NEXT(fstat)(fd, &st)) {
		cancel = shca_cells_lock(fabric);
		channel = shca_channel_make(fabric, shca_self.slot, (uint32_t)fifo);
		shca_cells_unlock(fabric, cancel);
	}
	if (channel < 0) {
		shca_event_destroy(fabric, shca_self.slot, (uint32_t)fifo, fd);
		return (int)channel;
	}
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	made.ino = st.st_ino;
	made.fifo = (uint32_t)fifo;
	pthread_mutex_lock(&lock);
	note(fd, (uint32_t)channel + 1, &made);
	pthread_mutex_unlock(&lock);
	return fd;
}

int shca_compat_cm_open(int flags)
{
	int ret = shca_process_attach(), cancel = shca_cancel_hold();

	if (ret == 0)
		ret = -ENOENT;
	if (ret > 0)
		ret = shca_process_enter();
	if (!ret) {
		ret = make(flags);
		if (ret < 0)
			shca_process_leave();
	}
	shca_cancel_restore(cancel);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static int64_t channel_of(int fd)
{
	uint32_t channel = channel_at(fd);

	return channel && is_own(&opened[fd]) ? (int64_t)channel - 1 : -EINVAL;
}

static ssize_t run(uint32_t channel, const void *command, size_t len, bool token_was_read)
{
	return shca_command_run(&shca_self.fabric, channel, channel_of, command, len,
				token_was_read);
}

/* Gets an event, and waits for one if the descriptor blocks. */
static ssize_t get_event(int fd, uint32_t channel, const void *command, size_t len)
{
	SHCA_CLOCKED(EVENT, 1);
	ssize_t ret = run(channel, command, len, false);
	struct shca_event token;

	while (ret == -EAGAIN) {
		/* EINTR and EAGAIN come from here. */
		if (shca_timing.read_channel(fd, &token, sizeof(token)) != (ssize_t)sizeof(token))
			return -errno;
		ret = run(channel, command, len, true);
	}
	return ret;
}

static ssize_t execute(uint32_t channel, const void *command, size_t len)
{
	SHCA_CLOCKED(VERB, 1);

	return run(channel, command, len, false);
}

ssize_t shca_write(int fd, const void *buf, size_t len)
{
	uint32_t channel = channel_at(fd);
	ssize_t ret;

	if (!channel || !is_same(fd))
		return NEXT(write)(fd, buf, len);
	if (!is_own(&opened[fd]))
		ret = -EPERM;
	else if (shca_command_gets_event(buf, len))
		ret = get_event(fd, channel - 1, buf, len);
	else
		ret = execute(channel - 1, buf, len);
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* Ends a channel whose last descriptor is closed; or, unless fd is negative, closes that too. */
static void end(uint32_t channel, uint32_t fifo, int fd)
{
	SHCA_CLOCKED(VERB, 1);
	int cancel = shca_cancel_hold();

	shca_life_close(&shca_self.fabric, channel - 1);
	shca_event_destroy(&shca_self.fabric, shca_self.slot, fifo, fd);
	shca_process_leave();
	shca_cancel_restore(cancel);
}

/* A child's close() changes nothing of its parent's, whose memory it shares after vfork(). */
int shca_close(int fd)
{
	uint32_t channel = channel_at(fd), fifo;
	bool same, last;

	if (!channel || !is_own(&opened[fd]))
		return NEXT(close)(fd);
	pthread_mutex_lock(&lock);
	channel = channel_at(fd);
	same = channel && is_same(fd);
	fifo = opened[fd].fifo;
	if (channel)
		forget(fd);
	last = channel && !has_descriptor(channel);
	pthread_mutex_unlock(&lock);
	if (last)
		end(channel, fifo, same ? fd : -1);
	return last && same ? 0 : NEXT(close)(fd);
}

/* ---- descriptors that are duplicated ---- */

/* Notes that `to` is a duplicate of `from`, if that is a channel's. Returns `to`, or -1 with errno
 * if its number is too high. The caller holds the lock. */
static int note_duplicate(int from, int to)
{
	uint32_t channel = channel_at(from);

	if (!channel || from == to || !is_same(from))
		return to;
	if (to >= MAX_FDS) {
		NEXT(close)(to);
		errno = EMFILE;
		return -1;
	}
	note(to, channel, &opened[from]);
	if (is_own(&opened[to]))
		shca_event_note(to);
	return to;
}

int shca_dup(int fd)
{
	int to;

	if (!channel_at(fd))
		return NEXT(dup)(fd);
	pthread_mutex_lock(&lock);
	to = NEXT(dup)(fd);
	if (to >= 0)
		to = note_duplicate(fd, to);
	pthread_mutex_unlock(&lock);
	return to;
}

/* Duplicates a descriptor to a number, and closes what has the number. */
static int dup_to(int fd, int at, int flags, int (*call)(int fd, int at, int flags))
{
	uint32_t before, fifo = 0;
	bool last = false;
	int to;

	if (fd == at || (!channel_at(fd) && !channel_at(at)))
		return call(fd, at, flags);
	pthread_mutex_lock(&lock);
	before = channel_at(at);
	to = call(fd, at, flags);
	if (to >= 0) {
		if (before && is_own(&opened[at])) {
			fifo = opened[at].fifo;
			forget(at);
		} else {
			before = 0;
		}
		to = note_duplicate(fd, to);
		last = before && !has_descriptor(before);
	}
	pthread_mutex_unlock(&lock);
	if (last)
		end(before, fifo, -1);
	return to;
}

static int call_dup2(int fd, int at, int flags)
{
	(void)flags;
	return NEXT(dup2)(fd, at);
}

static int call_dup3(int fd, int at, int flags)
{
	return NEXT(dup3)(fd, at, flags);
}

int shca_dup2(int fd, int at)
{
	return dup_to(fd, at, 0, call_dup2);
}

int shca_dup3(int fd, int at, int flags)
{
	return dup_to(fd, at, flags, call_dup3);
}

/* Commands without an argument don't look at it. */
static int control(fcntl_fn *call, int fd, int cmd, void *arg)
{
	int ret;

	if ((cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC) || !channel_at(fd))
		return call(fd, cmd, arg);
	pthread_mutex_lock(&lock);
	ret = call(fd, cmd, arg);
	if (ret >= 0)
		ret = note_duplicate(fd, ret);
	pthread_mutex_unlock(&lock);
	return ret;
}

int shca_fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return control(NEXT(fcntl), fd, cmd, arg);
}

int shca_fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return control(NEXT(fcntl64), fd, cmd, arg);
}

/* The rest of the answer stays the FIFO's. */
static void fill(int fd, struct stat *st)
{
	if (!channel_at(fd) || !is_same(fd))
		return;
	st->st_mode = S_IFCHR | DEVICE_MODE;
	st->st_rdev = makedev(DEVICE_MAJOR, DEVICE_MINOR);
}

int shca_fstat(int fd, struct stat *st)
{
	int ret = NEXT(fstat)(fd, st);

	if (!ret)
		fill(fd, st);
	return ret;
}

int shca_fstat64(int fd, struct stat *st)
{
	int ret = NEXT(fstat64)(fd, st);

	if (!ret)
		fill(fd, st);
	return ret;
}

/* librdmacm asks the kernel for its device by netlink first. The answer must not be that of a
 * kernel which has such a device; without one, librdmacm looks at the path. */
int shca_socket(int domain, int type, int protocol)
{
	const char *fabric;

	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		fabric = getenv(SHCA_ENV_FABRIC);
		if (fabric && *fabric) {
			errno = EPROTONOSUPPORT;
			return -1;
		}
	}
	return NEXT(socket)(domain, type, protocol);
}
