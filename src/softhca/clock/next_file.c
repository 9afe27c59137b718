/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_file.c - calls that may block in the kernel: reading, writing, sockets, children. The thread
 * gives its turn away if the call would block; who writes may wake others.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "next.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                             \
	FN(ssize_t, read, (int fd, void *buf, size_t len))                                        \
	FN(ssize_t, readv, (int fd, const struct iovec *v, int n))                                \
	FN(ssize_t, recv, (int fd, void *buf, size_t len, int flags))                             \
	FN(ssize_t, recvfrom,                                                                     \
	   (int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *fromlen)) \
	FN(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags))                               \
	FN(int, accept, (int fd, struct sockaddr *from, socklen_t *len))                          \
	FN(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags))              \
	FN(ssize_t, write, (int fd, const void *buf, size_t len))                                 \
	FN(ssize_t, writev, (int fd, const struct iovec *v, int n))                               \
	FN(ssize_t, send, (int fd, const void *buf, size_t len, int flags))                       \
	FN(ssize_t, sendto,                                                                       \
	   (int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,            \
	    socklen_t tolen))                                                                     \
	FN(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags))                         \
	FN(int, connect, (int fd, const struct sockaddr *to, socklen_t len))                      \
	FN(pid_t, wait, (int *status))                                                            \
	FN(pid_t, waitpid, (pid_t pid, int *status, int options))                                 \
	FN(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options))                  \
	FN(int, eventfd_write, (int fd, eventfd_t n))

NEXT_FUNCTIONS(FUNCTIONS)

static bool would_block(int fd, short events, int flags)
{
	struct pollfd p = {.fd = fd, .events = events};
	const struct timespec zero = {0, 0};
	int mode;

	if ((flags & MSG_DONTWAIT) || ppoll(&p, 1, &zero, NULL))
		return false;
	mode = fcntl(fd, F_GETFL);
	return mode >= 0 && !(mode & O_NONBLOCK);
}

/* A program that reads a descriptor which has nothing, again and again, spins. */
static void looked(ssize_t r)
{
	int error = errno;

	if (r >= 0 || error != EAGAIN)
		return;
	shca_program_enter();
	shca_program_looked();
	shca_program_leave();
	errno = error;
}

/* Returns true if a descriptor is a file on a disk, or of the kernel: reading and writing it waits
 * for nobody, and wakes nobody. */
static bool is_file(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
}

/* Returns true if the call would block, after giving the turn away; otherwise ends the call. */
static bool leaves(int fd, short events, int flags)
{
	bool blocks;

	shca_program_enter_free();
	blocks = would_block(fd, events, flags);
	if (blocks)
		shca_program_out();
	else
		shca_program_leave();
	return blocks;
}

#define READING(fd, flags, call)                       \
	ssize_t r;                                     \
	bool away;                                     \
                                                       \
	if (!shca_program_is_clocked() || is_file(fd)) \
		return call;                           \
	away = leaves(fd, POLLIN, flags);              \
	r = call;                                      \
	if (away)                                      \
		shca_program_come_back();              \
	else                                           \
		looked(r);                             \
	return r

ssize_t shca_read(int fd, void *buf, size_t len)
{
	READING(fd, 0, NEXT(read)(fd, buf, len));
}

ssize_t shca_readv(int fd, const struct iovec *v, int n)
{
	READING(fd, 0, NEXT(readv)(fd, v, n));
}

ssize_t shca_recv(int fd, void *buf, size_t len, int flags)
{
	READING(fd, flags, NEXT(recv)(fd, buf, len, flags));
}

ssize_t shca_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		      socklen_t *fromlen)
{
	READING(fd, flags, NEXT(recvfrom)(fd, buf, len, flags, from, fromlen));
}

ssize_t shca_recvmsg(int fd, struct msghdr *m, int flags)
{
	READING(fd, flags, NEXT(recvmsg)(fd, m, flags));
}

int shca_accept(int fd, struct sockaddr *from, socklen_t *len)
{
	bool away = shca_program_is_clocked() && leaves(fd, POLLIN, 0);
	int r = NEXT(accept)(fd, from, len);

	if (away)
		shca_program_come_back();
	return r;
}

int shca_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	bool away = shca_program_is_clocked() && leaves(fd, POLLIN, 0);
	int r = NEXT(accept4)(fd, from, len, flags);

	if (away)
		shca_program_come_back();
	return r;
}

/* Returns true if a write wakes nobody but threads of this process: an eventfd has no type. */
static bool stays_inside(int fd, size_t len)
{
	struct stat s;

	return len == sizeof(eventfd_t) && !fstat(fd, &s) && !(s.st_mode & S_IFMT);
}

#define WRITING(fd, len, flags, call)           \
	ssize_t r;                              \
	bool away;                              \
                                                \
	if (is_file(fd))                        \
		return call;                    \
	if (!stays_inside(fd, len))             \
		shca_program_disturbs_others(); \
	if (!shca_program_is_clocked())         \
		return call;                    \
	away = leaves(fd, POLLOUT, flags);      \
	r = call;                               \
	if (away)                               \
		shca_program_come_back();       \
	else                                    \
		shca_program_disturbs();        \
	return r

ssize_t shca_write(int fd, const void *buf, size_t len)
{
	WRITING(fd, len, 0, NEXT(write)(fd, buf, len));
}

ssize_t shca_writev(int fd, const struct iovec *v, int n)
{
	WRITING(fd, 0, 0, NEXT(writev)(fd, v, n));
}

ssize_t shca_send(int fd, const void *buf, size_t len, int flags)
{
	WRITING(fd, 0, flags, NEXT(send)(fd, buf, len, flags));
}

ssize_t shca_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		    socklen_t tolen)
{
	WRITING(fd, 0, flags, NEXT(sendto)(fd, buf, len, flags, to, tolen));
}

ssize_t shca_sendmsg(int fd, const struct msghdr *m, int flags)
{
	WRITING(fd, 0, flags, NEXT(sendmsg)(fd, m, flags));
}

#define AWAY(call)                      \
	int r;                          \
                                        \
	if (!shca_program_is_clocked()) \
		return call;            \
	shca_program_go_out();          \
	r = call;                       \
	shca_program_come_back();       \
	return r

/* Connects to a socket of this machine, which succeeds or fails at once. */
static int connect_here(int fd, const struct sockaddr *to, socklen_t len)
{
	int r = NEXT(connect)(fd, to, len);

	if (!r) {
		shca_program_disturbs_others();
		shca_program_disturbs();
	}
	return r;
}

int shca_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (shca_program_is_clocked() && to->sa_family == AF_UNIX)
		return connect_here(fd, to, len);
	shca_program_disturbs_others();
	AWAY(NEXT(connect)(fd, to, len));
}

pid_t shca_wait(int *status)
{
	AWAY(NEXT(wait)(status));
}

pid_t shca_waitpid(pid_t pid, int *status, int options)
{
	AWAY(NEXT(waitpid)(pid, status, options));
}

int shca_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	AWAY(NEXT(waitid)(type, id, info, options));
}

int shca_eventfd_write(int fd, eventfd_t n)
{
	if (shca_program_is_clocked())
		shca_program_disturbs();
	return NEXT(eventfd_write)(fd, n);
}
