/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_file.c - calls that may block in the kernel: reading, writing, sockets, children. The thread
 * gives its turn away if the call would block. A write may wake other threads.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
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
	FN(ssize_t, readv, (int fd, const struct iovec *iov, int count))                          \
	FN(ssize_t, recv, (int fd, void *buf, size_t len, int flags))                             \
	FN(ssize_t, recvfrom,                                                                     \
	   (int fd, void *buf, size_t len, int flags, struct sockaddr *from, socklen_t *fromlen)) \
	FN(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))                         \
	FN(int, accept, (int fd, struct sockaddr *from, socklen_t *len))                          \
	FN(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags))              \
	FN(ssize_t, write, (int fd, const void *buf, size_t len))                                 \
	FN(ssize_t, writev, (int fd, const struct iovec *iov, int count))                         \
	FN(ssize_t, send, (int fd, const void *buf, size_t len, int flags))                       \
	FN(ssize_t, sendto,                                                                       \
	   (int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,            \
	    socklen_t tolen))                                                                     \
	FN(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))                   \
	FN(int, connect, (int fd, const struct sockaddr *to, socklen_t len))                      \
	FN(pid_t, wait, (int *status))                                                            \
	FN(pid_t, waitpid, (pid_t pid, int *status, int options))                                 \
	FN(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options))                  \
	FN(int, eventfd_write, (int fd, eventfd_t value))

NEXT_FUNCTIONS(FUNCTIONS)

static bool would_block(int fd, short events, int flags)
{
	struct pollfd entry = {.fd = fd, .events = events};
	const struct timespec zero = {0, 0};
	int mode;

	if ((flags & MSG_DONTWAIT) || ppoll(&entry, 1, &zero, NULL))
		return false;
	mode = fcntl(fd, F_GETFL);
	return mode >= 0 && !(mode & O_NONBLOCK);
}

/* Notes that a call has done what may wake other threads, also those of other processes. */
static void wakes_others(void)
{
	shca_program_disturb_others();
	shca_program_disturb();
}

/* Notes the result of a read. A program that reads a descriptor which has nothing, again and again,
 * spins. A read makes room, for which a writer may wait. */
static void note_read(ssize_t rc)
{
	int error = errno;

	if (rc > 0)
		wakes_others();
	if (rc >= 0 || error != EAGAIN)
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
	struct stat info;

	return !fstat(fd, &info) && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

/* Begins a call of the program. Gives the turn away, and returns true, if the call would block.
 * Otherwise ends softhca's part of the call at once. */
static bool give_turn_if_blocking(int fd, short events, int flags)
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

#define READING(fd, flags, call)                              \
	ssize_t rc;                                           \
	bool gave_turn;                                       \
                                                              \
	if (!shca_program_join() || is_file(fd))              \
		return call;                                  \
	gave_turn = give_turn_if_blocking(fd, POLLIN, flags); \
	rc = call;                                            \
	if (gave_turn)                                        \
		shca_program_come_back();                     \
	else                                                  \
		note_read(rc);                                \
	return rc

ssize_t shca_read(int fd, void *buf, size_t len)
{
	READING(fd, 0, NEXT(read)(fd, buf, len));
}

ssize_t shca_readv(int fd, const struct iovec *iov, int count)
{
	READING(fd, 0, NEXT(readv)(fd, iov, count));
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

ssize_t shca_recvmsg(int fd, struct msghdr *message, int flags)
{
	READING(fd, flags, NEXT(recvmsg)(fd, message, flags));
}

/* Accepting a connection makes room for one that waits to be made. */
#define ACCEPTING(fd, call)                               \
	bool gave_turn;                                   \
	int rc;                                           \
                                                          \
	if (!shca_program_join())                         \
		return call;                              \
	gave_turn = give_turn_if_blocking(fd, POLLIN, 0); \
	rc = call;                                        \
	if (rc >= 0)                                      \
		wakes_others();                           \
	if (gave_turn)                                    \
		shca_program_come_back();                 \
	return rc

int shca_accept(int fd, struct sockaddr *from, socklen_t *len)
{
	ACCEPTING(fd, NEXT(accept)(fd, from, len));
}

int shca_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	ACCEPTING(fd, NEXT(accept4)(fd, from, len, flags));
}

/* Returns true if a write wakes nobody but threads of this process: an eventfd has no type. */
static bool stays_in_process(int fd, size_t len)
{
	struct stat info;

	return len == sizeof(eventfd_t) && !fstat(fd, &info) && !(info.st_mode & S_IFMT);
}

#define WRITING(fd, len, flags, call)                          \
	ssize_t rc;                                            \
	bool gave_turn;                                        \
                                                               \
	if (is_file(fd))                                       \
		return call;                                   \
	if (!stays_in_process(fd, len))                        \
		shca_program_disturb_others();                 \
	if (!shca_program_join())                              \
		return call;                                   \
	gave_turn = give_turn_if_blocking(fd, POLLOUT, flags); \
	rc = call;                                             \
	if (gave_turn)                                         \
		shca_program_come_back();                      \
	else                                                   \
		shca_program_disturb();                        \
	return rc

ssize_t shca_write(int fd, const void *buf, size_t len)
{
	WRITING(fd, len, 0, NEXT(write)(fd, buf, len));
}

ssize_t shca_writev(int fd, const struct iovec *iov, int count)
{
	WRITING(fd, 0, 0, NEXT(writev)(fd, iov, count));
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

ssize_t shca_sendmsg(int fd, const struct msghdr *message, int flags)
{
	WRITING(fd, 0, flags, NEXT(sendmsg)(fd, message, flags));
}

#define OUT_OF_TURN(call)         \
	int rc;                   \
                                  \
	if (!shca_program_join()) \
		return call;      \
	shca_program_go_out();    \
	rc = call;                \
	shca_program_come_back(); \
	return rc

/* Returns true if a socket of that address, of this machine, accepts or refuses at once, unless as
 * many connections as it takes wait to be accepted. */
static bool is_here(const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (!to || len < sizeof(to->sa_family))
		return false;
	if (to->sa_family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, to, sizeof(in));
		return ntohl(in.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	}
	if (to->sa_family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, to, sizeof(in6));
		return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
	}
	return to->sa_family == AF_UNIX;
}

/* Connects to a socket of this machine, which disturbs others only if it succeeds. A thread that
 * has to wait until earlier connections are accepted loses its turn: nothing tells beforehand. */
static int connect_here(int fd, const struct sockaddr *to, socklen_t len)
{
	int rc = NEXT(connect)(fd, to, len);

	shca_program_reclaim();
	/* The peer of a socket that doesn't block is on its way. */
	if (!rc || errno == EINPROGRESS)
		wakes_others();
	return rc;
}

int shca_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	if (shca_program_join() && is_here(to, len))
		return connect_here(fd, to, len);
	shca_program_disturb_others();
	OUT_OF_TURN(NEXT(connect)(fd, to, len));
}

pid_t shca_wait(int *status)
{
	OUT_OF_TURN(NEXT(wait)(status));
}

pid_t shca_waitpid(pid_t pid, int *status, int options)
{
	OUT_OF_TURN(NEXT(waitpid)(pid, status, options));
}

int shca_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	OUT_OF_TURN(NEXT(waitid)(type, id, info, options));
}

int shca_eventfd_write(int fd, eventfd_t value)
{
	if (shca_program_join())
		shca_program_disturb();
	return NEXT(eventfd_write)(fd, value);
}
