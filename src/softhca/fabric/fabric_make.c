/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_make.c - making, mapping and removing the shared file of a fabric: where its tables are,
 * and their first state.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "actors.h"
#include "address.h"
#include "recording.h"
#include "say.h"
#include "space.h"
#include "sysfs.h"
#include "table.h"

#define PAGE          4096ULL
#define GUID_BASE     0x0002c90300000000ULL
#define ROUND_PAGE(x) (((x) + PAGE - 1) & ~(PAGE - 1))
#define VERSION_DIGIT 56 /* bits of the magic: its last character */

/* Options that limit the tables. */
static const enum shca_opt limits[SHCA_KINDS] = {
	[SHCA_QP] = SHCA_O_MAX_QP, [SHCA_SRQ] = SHCA_O_MAX_SRQ,   [SHCA_CQ] = SHCA_O_MAX_CQ,
	[SHCA_MR] = SHCA_O_MAX_MR, [SHCA_XRCD] = SHCA_O_MAX_XRCD, [SHCA_MW] = SHCA_O_MAX_MW,
};

/* Returns the entries of a table that each process has addresses for: twice the limit, so that a
 * free entry is found soon, or all that numbers can name. */
static uint32_t table_size(enum shca_kind kind, const struct shca_config *config)
{
	uint64_t limit = (uint64_t)config->value[limits[kind]], all = 1ULL << shca_kind_log2(kind);

	return (uint32_t)(2 * limit < all ? 2 * limit : all);
}

/* Fills in the places of calendars and sets of contexts. Returns the size of the header and these.
 */
static uint64_t place_links(uint32_t nhcas, struct shca_hca *hcas, const struct shca_config *config)
{
	uint64_t at = ROUND_PAGE(sizeof(struct shca_fabric_header));

	for (unsigned i = 0; config->link_on && i < nhcas; i++) {
		if (hcas)
			hcas[i].ingress = at;
		at += ROUND_PAGE(sizeof(struct shca_calendar));
		if (hcas && shca_context_sets(config))
			hcas[i].contexts = at;
		at += ROUND_PAGE(shca_context_sets(config) * sizeof(struct shca_context_set));
	}
	return at;
}

/* Fills in the places of these and of the tables. Returns the size of the header and these. */
static uint64_t place_tables(uint32_t nhcas, struct shca_hca *hcas,
			     const struct shca_config *config)
{
	uint64_t at = place_links(nhcas, hcas, config);
	unsigned i, k;

	for (i = 0; i < nhcas; i++) {
		for (k = 0; k < SHCA_KINDS; k++) {
			if (hcas) {
				struct shca_table *table = &hcas[i].tables[k];

				table->offset = at;
				table->entry_size = shca_kind_size(k);
				table->size = table_size(k, config);
			}
			at += ROUND_PAGE((uint64_t)shca_kind_size(k) * table_size(k, config));
		}
	}
	return at;
}

/* Fills in the places of all that follows the header. Returns the size of all of it. */
static uint64_t place_all(uint32_t nhcas, struct shca_hca *hcas, struct shca_cm *cm,
			  const struct shca_config *config)
{
	uint64_t at = place_tables(nhcas, hcas, config);

	for (unsigned k = 0; k < SHCA_CM_KINDS; k++) {
		if (cm)
			cm->pools[k].offset = at;
		at += ROUND_PAGE((uint64_t)shca_cm_cell_size(k) * shca_cm_cell_count(k));
	}
	return at;
}

static int fill_hcas(struct shca_fabric_header *hdr)
{
	unsigned i, k;

	for (i = 0; i < hdr->nhcas; i++) {
		struct shca_hca *hca = &hdr->hcas[i];
		int rc;

		hca->node = (uint16_t)(i / hdr->devices);
		hca->device = (uint16_t)(i % hdr->devices);
		hca->lid = shca_is_ethernet(hdr) ? 0 : (uint16_t)(1 + i);
		/* The last byte is the index by which a GID is looked up. */
		hca->guid = GUID_BASE | (hdr->seed & 0xffffff) << 8 | i;
		snprintf(hca->name, sizeof(hca->name), "softhca%u", hca->device);
		hca->npkeys = (uint16_t)hdr->config.npkeys;
		memcpy(hca->pkeys, hdr->config.pkeys, sizeof(hca->pkeys));
		for (k = 0; k < SHCA_KINDS; k++)
			hca->tables[k].limit = (uint32_t)hdr->config.value[limits[k]];
		atomic_store(&hca->next_pdn, 1);
		rc = shca_lock_init(&hca->ctl_lock);
		if (rc)
			return rc;
	}
	return 0;
}

static int fill_header(struct shca_fabric_header *hdr, const char *dir,
		       const struct shca_config *config, const char *command)
{
	struct timespec now;
	int rc;

	clock_gettime(CLOCK_REALTIME, &now);
	hdr->magic = SHCA_MAGIC;
	hdr->nodes = (uint32_t)config->value[SHCA_O_NODES];
	hdr->devices = (uint32_t)config->value[SHCA_O_DEVICES];
	hdr->nhcas = hdr->nodes * hdr->devices;
	hdr->created = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	hdr->created_mono = shca_real_now();
	hdr->config = *config;
	atomic_store(&hdr->owner_pid, getpid());
	snprintf(hdr->dir, sizeof(hdr->dir), "%s", dir);
	snprintf(hdr->command, sizeof(hdr->command), "%s", command ? command : "");
	if (getrandom(&hdr->seed, sizeof(hdr->seed), 0) != sizeof(hdr->seed))
		return -errno;
	rc = shca_lock_init(&hdr->ctl_lock);
	if (!rc)
		rc = shca_lock_init(&hdr->cm.lock);
	if (!rc && config->value[SHCA_O_CLOCK] == SHCA_CLOCK_VIRTUAL)
		rc = shca_actors_init(&hdr->clock, config);
	if (!rc)
		rc = fill_hcas(hdr);
	hdr->size = place_all(hdr->nhcas, hdr->hcas, &hdr->cm, config);
	hdr->arenas = hdr->size;
	return rc;
}

/* A call of ftruncate() beyond RLIMIT_FSIZE is a signal that kills. */
static int set_size(int fd, uint64_t size)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < size)
		return -EFBIG;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

static int make_in(const char *dir, const struct shca_config *config, const char *command,
		   char *err, size_t errlen)
{
	const size_t len = ROUND_PAGE(sizeof(struct shca_fabric_header));
	uint32_t nhcas = (uint32_t)(config->value[SHCA_O_NODES] * config->value[SHCA_O_DEVICES]);
	const uint64_t backed = place_links(nhcas, NULL, config);
	struct shca_fabric fabric = {.fd = -1};
	struct shca_fabric_header *hdr;
	char path[SHCA_PATH_ROOM], text[512];
	int rc;

	snprintf(path, sizeof(path), "%s/seg", dir);
	fabric.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fabric.fd < 0)
		return shca_error_text(-errno, err, errlen, "The file %s can't be made (%s).", path,
				       strerror(errno));
	rc = set_size(fabric.fd,
		      place_all(nhcas, NULL, NULL, config) + SHCA_MAX_PROCS * SHCA_ARENA);
	if (rc) {
		shca_error_text(
			rc, err, errlen,
			"The file %s can't grow to the size of a fabric (%s): raise the file size "
			"limit (ulimit -f).",
			path, strerror(-rc));
		goto close;
	}
	rc = shca_space_back(fabric.fd, 0, backed);
	if (rc) {
		shca_space_text(dir, backed, text, sizeof(text));
		shca_error_text(rc, err, errlen, "A fabric can't be made: there is %s.", text);
		goto close;
	}
	hdr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fabric.fd, 0);
	if (hdr == MAP_FAILED) {
		rc = shca_error_text(-errno, err, errlen, "The file %s can't be mapped (%s).", path,
				     strerror(errno));
		goto close;
	}
	rc = fill_header(hdr, dir, config, command);
	snprintf(path, sizeof(path), "%s/monitor", dir);
	if (!rc && mkfifo(path, 0600))
		rc = -errno;
	if (!rc)
		rc = shca_sysfs_make(hdr);
	if (rc)
		shca_error_text(rc, err, errlen, "The files of a fabric can't be made in %s (%s).",
				dir, strerror(-rc));
	else
		atomic_store_explicit(&hdr->ready, 1, memory_order_release);
	munmap(hdr, len);
close:
	close(fabric.fd);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -errno : 0;
}

static bool ours(const char *name)
{
	return !strncmp(name, "sys.", 4) || !strncmp(name, "ev.", 3) || !strcmp(name, "monitor") ||
	       !strcmp(name, SHCA_TRACE_LINK) || !strcmp(name, SHCA_CAPTURE_LINK);
}

/* Removes a file or a folder, with what is in it. */
static int remove_all(const char *dir, const char *name)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	/* -1: nftw() failed, or a removal with EPERM. A process that ends may have removed its
	 * files first, which is no error. */
	if (rc == -1)
		rc = errno == ENOENT ? 0 : -errno;
	free(path);
	return rc;
}

int shca_fabric_remove(const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int rc = 0, one;

	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		if (!ours(entry->d_name))
			continue;
		one = remove_all(dir, entry->d_name);
		rc = one && !rc ? one : rc;
	}
	/* Removed last: while this file is there, the removal can be repeated. */
	if (!rc && unlinkat(dirfd(d), "seg", 0) && errno != ENOENT)
		rc = -errno;
	closedir(d);
	if (rc)
		return rc;
	return rmdir(dir) && errno != ENOENT ? -errno : 0;
}

int shca_fabric_create(const char *dir, const struct shca_config *config, const char *command,
		       char *err, size_t errlen)
{
	int64_t nhcas = config->value[SHCA_O_NODES] * config->value[SHCA_O_DEVICES];
	char *path;
	int rc;

	if (nhcas < 1 || nhcas > SHCA_MAX_HCAS)
		return shca_error_text(
			-EINVAL, err, errlen,
			"A fabric has 1 to %d HCAs, not %lld: ask for fewer nodes or devices.",
			SHCA_MAX_HCAS, (long long)nhcas);
	if (mkdir(dir, 0700))
		return shca_error_text(-errno, err, errlen, "The directory %s can't be made (%s).",
				       dir, strerror(errno));
	path = realpath(dir, NULL);
	if (!path) {
		rc = shca_error_text(-errno, err, errlen,
				     "The directory %s can't be found again (%s).", dir,
				     strerror(errno));
		goto remove;
	}
	if (strlen(path) >= sizeof(((struct shca_fabric_header *)0)->dir)) {
		rc = shca_error_text(-ENAMETOOLONG, err, errlen,
				     "The path %s is too long for a fabric: use a shorter one.",
				     path);
		goto remove;
	}
	rc = make_in(path, config, command, err, errlen);
remove:
	free(path);
	if (rc)
		shca_fabric_remove(dir);
	return rc;
}

/* ---- attaching ---- */

/* Checks the header's first fields, of a file of that length, before any of it is trusted. */
static int check(const struct shca_fabric_header *hdr, off_t len, const char *dir, char *err,
		 size_t errlen)
{
	const uint64_t name = (1ULL << VERSION_DIGIT) - 1;

	if (len < (off_t)offsetof(struct shca_fabric_header, created) ||
	    (hdr->magic & name) != (SHCA_MAGIC & name))
		return shca_error_text(
			-EINVAL, err, errlen,
			"%s isn't a fabric, or isn't finished: start the program with "
			"\"softhca run\".",
			dir);
	if (hdr->magic != SHCA_MAGIC || len < (off_t)sizeof(*hdr) || hdr->nhcas > SHCA_MAX_HCAS ||
	    hdr->size != place_all(hdr->nhcas, NULL, NULL, &hdr->config) ||
	    hdr->arenas != hdr->size)
		return shca_error_text(
			-EPROTO, err, errlen,
			"The fabric %s was made by another version of softhca: use the "
			"launcher and the library of one version.",
			dir);
	if (!atomic_load(&hdr->ready))
		return shca_error_text(
			-EAGAIN, err, errlen,
			"The fabric %s isn't finished: start the program with \"softhca run\".",
			dir);
	return 0;
}

/* Reads the size of the fabric from the file. The header is mapped, as it is more than a thread's
 * stack may hold. */
static int read_size(int fd, const char *dir, uint64_t *size, char *err, size_t errlen)
{
	const struct shca_fabric_header *hdr;
	struct stat st;
	int rc;

	hdr = fstat(fd, &st) ? MAP_FAILED : mmap(NULL, sizeof(*hdr), PROT_READ, MAP_SHARED, fd, 0);
	if (hdr == MAP_FAILED) {
		rc = -errno;
		return shca_error_text(rc, err, errlen, "The fabric %s can't be read (%s).", dir,
				       strerror(-rc));
	}
	rc = check(hdr, st.st_size, dir, err, errlen);
	if (!rc)
		*size = hdr->size;
	munmap((void *)hdr, sizeof(*hdr));
	return rc;
}

int shca_fabric_attach(const char *dir, struct shca_fabric *fabric, char *err, size_t errlen)
{
	char *path, text[256];
	uint64_t size = 0;
	int rc;

	memset(fabric, 0, sizeof(*fabric));
	fabric->fd = -1;
	if (asprintf(&path, "%s/seg", dir) < 0)
		return shca_error_text(-ENOMEM, err, errlen, "There is no memory left.");
	fabric->fd = open(path, O_RDWR | O_CLOEXEC);
	rc = fabric->fd < 0 ? -errno : 0;
	free(path);
	if (rc) {
		if (rc == -ENOENT || rc == -ENOTDIR)
			return shca_error_text(
				rc, err, errlen,
				"There is no fabric %s (has it ended?): start the program with "
				"\"softhca run\".",
				dir);
		if (rc == -EACCES || rc == -EPERM)
			return shca_error_text(
				rc, err, errlen,
				"The fabric %s belongs to another user: start one of your own.",
				dir);
		return shca_error_text(rc, err, errlen, "The file %s/seg can't be opened (%s).",
				       dir, strerror(-rc));
	}
	rc = read_size(fabric->fd, dir, &size, err, errlen);
	if (rc)
		goto close;
	fabric->hdr =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fabric->fd, 0);
	if (fabric->hdr == MAP_FAILED) {
		rc = -errno;
		shca_space_addresses_text(size, errno, text, sizeof(text));
		shca_error_text(rc, err, errlen,
				"The fabric %s can't be mapped: %s; lower limits of its adapters "
				"(--max-mr, "
				"--max-qp, --max-srq, --max-cq) or fewer nodes make it smaller.",
				dir, text);
		goto close;
	}
	madvise(fabric->hdr, size, MADV_DONTDUMP);
	return 0;
close:
	close(fabric->fd);
	fabric->fd = -1;
	fabric->hdr = NULL;
	return rc;
}

void shca_fabric_detach(struct shca_fabric *fabric)
{
	unsigned i, v;

	if (!fabric->hdr)
		return;
	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		for (v = 0; v < SHCA_VIEWS; v++) {
			char *p = atomic_exchange(&fabric->views[v][i], NULL);

			if (p)
				munmap(p, SHCA_VIEW << v);
		}
	}
	munmap(fabric->hdr, fabric->hdr->size);
	fabric->hdr = NULL;
	close(fabric->fd);
	fabric->fd = -1;
}
