/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics.c - the folder of this user's fabrics.
 */
#define _GNU_SOURCE 1
#include "fabrics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabric/proc.h"

#define NAME_TRIES 16

const char *shca_fabrics_name(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash ? slash + 1 : dir;
}

unsigned shca_fabrics_processes(const struct shca_fabric *fabric)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		n += shca_proc_alive(fabric, i) && shca_proc_running(fabric, i);
	return n;
}

/* Locks a directory with flock. Returns a descriptor, or -errno (-EWOULDBLOCK: another process
 * holds the lock). */
static int lock_dir(const char *dir, int how)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	do {
		rc = flock(fd, how);
	} while (rc && errno == EINTR);
	if (rc) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int create_named(const char *root, const struct shca_config *config, const char *command,
			char *dir, size_t len, char *err, size_t errlen)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		uint32_t salt;
		int rc;

		/* A pid alone isn't unique: containers may share /dev/shm. */
		if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
			return -EIO;
		rc = snprintf(dir, len, "%s/%d-%06x", root, (int)getpid(), salt & 0xffffff);
		if (rc >= (int)len)
			return -ENAMETOOLONG;
		if (access(dir, F_OK) == 0)
			continue;
		return shca_fabric_create(dir, config, command, err, errlen);
	}
	return -EEXIST;
}

int shca_fabrics_create(const struct shca_config *config, const char *command, char *dir,
			size_t len, char *err, size_t errlen)
{
	char root[SHCA_DIR_LEN];
	int rc = shca_fabric_root(root, sizeof(root));
	int root_lock;

	*err = '\0';
	if (rc) {
		snprintf(err, errlen, "The folder of the fabrics in /dev/shm can't be made: %s.",
			 strerror(-rc));
		return rc;
	}
	root_lock = lock_dir(root, LOCK_EX);
	if (root_lock < 0) {
		snprintf(err, errlen, "The folder %s can't be locked: %s.", root,
			 strerror(-root_lock));
		return root_lock;
	}
	rc = create_named(root, config, command, dir, len, err, errlen);
	if (rc == 0) {
		/* This may wait for a process that looks for dead fabrics. */
		int lock = lock_dir(dir, LOCK_EX);

		if (lock < 0)
			shca_fabric_remove(dir);
		rc = lock;
	}
	if (rc < 0 && !*err)
		snprintf(err, errlen, "A fabric can't be made in %s: %s.", root, strerror(-rc));
	close(root_lock);
	return rc;
}

/* Returns true if a process of the fabric runs, or if that can't be found out. */
static bool may_be_running(const char *dir)
{
	struct shca_fabric fabric;
	bool running;
	char err[256];
	int rc = shca_fabric_attach(dir, &fabric, err, sizeof(err));

	/*
	 * A half-made fabric has lost its maker, which would hold the lock. Other fabrics that
	 * can't be mapped are left alone: another version of softhca made them, or there is no room
	 * to map them.
	 */
	if (rc)
		return rc != -ENOENT && rc != -EINVAL && rc != -EAGAIN;
	running = shca_fabrics_processes(&fabric) > 0;
	shca_fabric_detach(&fabric);
	return running;
}

static int add(struct shca_listings *listings, const char *dir, bool held)
{
	struct shca_listing *list = reallocarray(listings->list, listings->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	listings->list = list;
	snprintf(list[listings->n].dir, sizeof(list[listings->n].dir), "%s", dir);
	list[listings->n++].held = held;
	return 0;
}

/* Lists one directory, or removes it if it is dead and may_remove says that no fabric is being
 * made. */
static int visit(struct shca_listings *listings, const char *dir, bool may_remove)
{
	/* Shared, so that two processes which look at a dead fabric don't take each other for
	 * its launcher. */
	int lock = lock_dir(dir, LOCK_SH | LOCK_NB);

	if (lock == -ENOENT || lock == -ENOTDIR)
		return 0;
	if (lock < 0)
		return add(listings, dir, true);
	if (may_be_running(dir)) {
		close(lock);
		return add(listings, dir, false);
	}
	if (may_remove)
		shca_fabric_remove(dir);
	close(lock);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(((const struct shca_listing *)a)->dir,
			  ((const struct shca_listing *)b)->dir);
}

int shca_fabrics_list(struct shca_listings *out)
{
	char root[SHCA_DIR_LEN], dir[SHCA_DIR_LEN + NAME_MAX + 2];
	int root_lock, rc = shca_fabric_root(root, sizeof(root));
	struct dirent *entry;
	DIR *d;

	*out = (struct shca_listings){0};
	if (rc)
		return rc;
	d = opendir(root);
	if (!d)
		return -errno;
	root_lock = lock_dir(root, LOCK_EX | LOCK_NB);
	while (!rc && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", root, entry->d_name);
		if (strlen(dir) < SHCA_DIR_LEN)
			rc = visit(out, dir, root_lock >= 0);
	}
	if (root_lock >= 0)
		close(root_lock);
	closedir(d);
	if (rc)
		shca_fabrics_free(out);
	else if (out->n)
		qsort(out->list, out->n, sizeof(*out->list), by_name);
	return rc;
}

void shca_fabrics_free(struct shca_listings *listings)
{
	free(listings->list);
	*listings = (struct shca_listings){0};
}

static bool has_pid(const char *dir, int pid)
{
	struct shca_fabric fabric;
	bool found;
	char err[256];

	if (shca_fabric_attach(dir, &fabric, err, sizeof(err)))
		return false;
	found = atomic_load(&fabric.hdr->owner_pid) == pid;
	for (unsigned i = 0; i < SHCA_MAX_PROCS && !found; i++)
		found = shca_proc_alive(&fabric, i) &&
			atomic_load(&fabric.hdr->procs[i].pid) == pid;
	shca_fabric_detach(&fabric);
	return found;
}

static const struct shca_listing *find(const struct shca_listings *listings, const char *which)
{
	int64_t pid = strspn(which, "0123456789") == strlen(which) ? atoll(which) : 0;

	for (size_t i = 0; i < listings->n; i++) {
		if (strcmp(listings->list[i].dir, which) == 0 ||
		    strcmp(shca_fabrics_name(listings->list[i].dir), which) == 0)
			return &listings->list[i];
	}
	for (size_t i = 0; i < listings->n && pid > 0 && pid <= INT32_MAX; i++) {
		if (has_pid(listings->list[i].dir, (int)pid))
			return &listings->list[i];
	}
	return NULL;
}

static void list_names(const struct shca_listings *listings, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < listings->n && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? ", " : "",
					 shca_fabrics_name(listings->list[i].dir));
}

int shca_fabrics_pick(const char *which, char *dir, size_t len, char *err, size_t errlen)
{
	const char *env = getenv(SHCA_ENV_FABRIC);
	const struct shca_listing *found = NULL;
	struct shca_listings listings;
	char names[400];
	int rc = shca_fabrics_list(&listings);

	if (rc) {
		snprintf(err, errlen, "The folder of the fabrics can't be read: %s.",
			 strerror(-rc));
		return rc;
	}
	list_names(&listings, names, sizeof(names));
	if (!which && env && *env)
		which = env;
	if (which)
		found = find(&listings, which);
	else if (listings.n == 1)
		found = &listings.list[0];
	if (found)
		snprintf(dir, len, "%s", found->dir);
	else if (listings.n == 0)
		snprintf(err, errlen, "There is no %s%s: start one with softhca run.",
			 which ? "fabric " : "fabric", which ? which : "");
	else if (which)
		snprintf(err, errlen, "There is no fabric %s: name one of %s.", which, names);
	else
		snprintf(err, errlen, "There are several fabrics: name one of %s.", names);
	rc = found ? 0 : -ENOENT;
	shca_fabrics_free(&listings);
	return rc;
}
