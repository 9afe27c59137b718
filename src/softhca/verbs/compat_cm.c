/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_cm.c - /dev/infiniband/rdma_cm, the device of librdmacm. A descriptor of it is a FIFO that
 * can be read while events are there, so the kernel itself answers poll(), epoll and fcntl().
 * Commands are written, so write() comes through here, and close(), because that destroys what the
 * descriptor has; fstat() must say that the FIFO is a device. A program that doesn't open the
 * device pays for a look at a counter.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
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
	FN(int, fstat, (int fd, struct stat *st))                 \
	FN(int, fstat64, (int fd, struct stat *st))               \
	FN(int, socket, (int domain, int type, int protocol))

NEXT_FUNCTIONS(FUNCTIONS)

#define INHERITED UINT32_MAX

/* The open channels. A program may have closed a descriptor in another way, and use its number for
 * something else, so the FIFO's inode is remembered. */
static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
static _Atomic int open_channels;
static struct {
	_Atomic uint32_t channel; /* + 1; 0: none; INHERITED: of the parent */
	uint32_t fifo;
	ino_t ino;
} opened[MAX_FDS];

/* Returns the channel of a descriptor, as `opened` has it. Keeps errno. */
static inline uint32_t channel_at(int fd)
{
	if (__builtin_expect(!atomic_load_explicit(&open_channels, memory_order_relaxed), 1) ||
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

/* Marks the open channels as those of the parent, in a forked child. */
static void disown(void)
{
	if (!atomic_load(&open_channels))
		return;
	for (unsigned fd = 0; fd < MAX_FDS; fd++)
		if (atomic_load(&opened[fd].channel))
			atomic_store(&opened[fd].channel, INHERITED);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, disown);
}

/* Makes a channel with a descriptor. Returns the descriptor or -errno. */
static int make(int flags)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	int64_t fifo, channel;
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
	opened[fd].ino = st.st_ino;
	opened[fd].fifo = (uint32_t)fifo;
	atomic_store_explicit(&opened[fd].channel, (uint32_t)channel + 1, memory_order_release);
	atomic_fetch_add(&open_channels, 1);
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

	return channel && channel != INHERITED ? (int64_t)channel - 1 : -EINVAL;
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
	if (channel == INHERITED)
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

static int close_channel(int fd, uint32_t channel)
{
	SHCA_CLOCKED(VERB, 1);
	bool same = is_same(fd);
	int cancel;

	atomic_store(&opened[fd].channel, 0);
	atomic_fetch_sub(&open_channels, 1);
	if (channel == INHERITED)
		return NEXT(close)(fd);
	cancel = shca_cancel_hold();
	shca_life_close(&shca_self.fabric, channel - 1);
	shca_event_destroy(&shca_self.fabric, shca_self.slot, opened[fd].fifo, same ? fd : -1);
	shca_process_leave();
	shca_cancel_restore(cancel);
	return same ? 0 : NEXT(close)(fd);
}

int shca_close(int fd)
{
	uint32_t channel = channel_at(fd);

	return channel ? close_channel(fd, channel) : NEXT(close)(fd);
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
