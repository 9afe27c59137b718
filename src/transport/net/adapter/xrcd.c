/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An XRC domain is found by the inode of a file, so the job has one: DIR/tupleq-xrcd-KEY, mode
 * 0600, empty.
 *
 * A process that uses the domain holds a shared flock() on the file. So a process that gets the
 * exclusive lock is the only user, and may unlink the file. Locks end with their holders, however
 * those end: the file that a killed job left is unlocked, and the next process that opens a domain
 * in this directory removes it.
 *
 * In the same way a process marks itself by a lock on one byte of the file, at an offset that its
 * endpoint's nonce gives: others see whether the process is still there. The marks are shared
 * locks, because NFS turns flock() into a lock on the whole file. They belong to the open file, so
 * a fork()ed child that has not closed it keeps its parent's mark.
 */
#include "net/adapter/xrcd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/adapter/objects.h"

#define PREFIX "tupleq-xrcd-"

static void file_name(char *name, size_t size, uint64_t key)
{
	snprintf(name, size, PREFIX "%016" PRIx64, key);
}

/* Returns true if this library made the file for this user. Any other file could give somebody else
 * access to the domain. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 0777) == 0600 &&
	       st->st_size == 0;
}

/* Unlinks the file if nobody else uses it, and it still has this name. */
static void unlink_if_last(int dir, const char *name, int fd)
{
	struct stat st, named;

	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ||
	    fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW))
		return;
	if (is_ours(&st) && st.st_dev == named.st_dev && st.st_ino == named.st_ino)
		unlinkat(dir, name, 0);
}

/* Removes the files of jobs that were killed. */
static void remove_leftovers(int dir, const char *own)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!listing) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((entry = readdir(listing))) {
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || !strcmp(entry->d_name, own))
			continue;
		fd = openat(dir, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		unlink_if_last(dir, entry->d_name, fd);
		close(fd);
	}
	closedir(listing);
}

/* Opens the file and locks it shared. A file that was unlinked between open() and flock() is opened
 * again. */
static int open_file(struct tq_net *net, int dir, const char *name, struct stat *st)
{
	int fd, error;

	for (;;) {
		fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			    0600);
		if (fd < 0) {
			error = errno;
			tq_log(net->job, TQ_LOG_ERROR,
			       "The file of the XRC domain, %s/%s, can't be opened: %s.",
			       net->job->dir, name,
			       error == ELOOP ? "it is a symbolic link" : strerror(error));
			return -error;
		}
		if (flock(fd, LOCK_SH) || fstat(fd, st)) {
			error = errno;
			tq_log(net->job, TQ_LOG_ERROR,
			       "The file of the XRC domain, %s/%s, can't be locked: %s%s.",
			       net->job->dir, name, strerror(error),
			       error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP
				       ? " (the directory has to be on a file system with "
					 "flock(), a local one best: TMPDIR names another)"
				       : "");
			close(fd);
			return -error;
		}
		if (!is_ours(st)) {
			tq_log(net->job, TQ_LOG_ERROR,
			       "%s/%s is not a file of this user's that TupleQ made (regular, "
			       "empty, mode 0600): its XRC "
			       "domain is not used.",
			       net->job->dir, name);
			close(fd);
			return -EPERM;
		}
		if (st->st_nlink > 0)
			return fd;
		close(fd);
	}
}

/* splitmix64's finaliser. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

int tq_xrcd_open(struct tq_net *net)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.oflags = O_CREAT,
	};
	char name[64];
	struct stat st;
	int dir, fd, error;

	net->xrcd_fd = -1;
	file_name(name, sizeof(name), net->job->key);
	dir = open(net->job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		error = errno;
		tq_log(net->job, TQ_LOG_ERROR, "The job's directory %s can't be opened: %s.",
		       net->job->dir, strerror(error));
		return -error;
	}
	remove_leftovers(dir, name);
	fd = open_file(net, dir, name, &st);
	if (fd < 0) {
		close(dir);
		return fd;
	}
	attr.fd = fd;
	net->xrcd = ibv_open_xrcd(net->dev.verbs, &attr);
	if (!net->xrcd) {
		error = errno;
		tq_log(net->job, TQ_LOG_ERROR, "No XRC domain can be opened on %s: %s.",
		       ibv_get_device_name(net->dev.verbs->device), strerror(error));
		unlink_if_last(dir, name, fd);
		close(fd);
		close(dir);
		return -error;
	}
	close(dir);
	net->xrcd_fd = fd;
	/* Two directories with the same key (in two containers, say) are two domains. */
	net->domain = mix(mix(mix(net->job->key) ^ st.st_dev) ^ st.st_ino);
	return 0;
}

/* Returns the lock that marks a process: a byte at an offset that its nonce gives. */
static struct flock mark_of(uint64_t nonce, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(nonce >> 2),
		.l_len = 1,
	};
}

/* Where the file system has no such locks, no process can be watched. */
void tq_xrcd_mark(const struct tq_net *net, uint64_t nonce)
{
	struct flock mark = mark_of(nonce, F_RDLCK);

	if (fcntl(net->xrcd_fd, F_OFD_SETLK, &mark))
		tq_log(net->job, TQ_LOG_DEBUG,
		       "The file of the XRC domain in %s takes no locks on bytes (%s): other "
		       "processes may not notice if this one dies.",
		       net->job->dir, strerror(errno));
}

int tq_xrcd_has_mark(const struct tq_net *net, uint64_t nonce)
{
	struct flock mark = mark_of(nonce, F_WRLCK);

	if (fcntl(net->xrcd_fd, F_OFD_GETLK, &mark))
		return -errno;
	return mark.l_type != F_UNLCK;
}

void tq_xrcd_close(struct tq_net *net)
{
	char name[64];
	int dir;

	if (!net->xrcd)
		return;
	ibv_close_xrcd(net->xrcd);
	net->xrcd = NULL;
	file_name(name, sizeof(name), net->job->key);
	dir = open(net->job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		unlink_if_last(dir, name, net->xrcd_fd);
		close(dir);
	}
	close(net->xrcd_fd);
	net->xrcd_fd = -1;
}
