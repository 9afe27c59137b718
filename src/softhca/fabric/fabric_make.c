/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_make.c - making the shared file of a fabric: where its tables are, and their first state.
 */
#define _GNU_SOURCE 1
#include "fabric_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
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
#include "space.h"
#include "sysfs.h"
#include "table.h"

#define PAGE          4096ULL
#define GUID_BASE     0x0002c90300000000ULL
#define ROUND_PAGE(x) (((x) + PAGE - 1) & ~(PAGE - 1))

int shca_fabric_fail(int rc, char *err, size_t errlen, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (errlen)
		vsnprintf(err, errlen, format, ap);
	va_end(ap);
	return rc;
}

/* Options that limit the tables. */
static const enum shca_opt limits[SHCA_KINDS] = {
	[SHCA_QP] = SHCA_O_MAX_QP, [SHCA_SRQ] = SHCA_O_MAX_SRQ,   [SHCA_CQ] = SHCA_O_MAX_CQ,
	[SHCA_MR] = SHCA_O_MAX_MR, [SHCA_XRCD] = SHCA_O_MAX_XRCD,
};

/* Returns the entries of a table that each process has addresses for: twice the limit, so that a
 * free entry is found soon, or all that numbers can name. */
static uint32_t table_size(enum shca_kind kind, const struct shca_config *config)
{
	uint64_t limit = (uint64_t)config->value[limits[kind]], all = 1ULL << shca_kind_log2(kind);

	return (uint32_t)(2 * limit < all ? 2 * limit : all);
}

/* Fills in the places of the calendars. Returns the size of the header and these. */
static uint64_t place_calendars(uint32_t nhcas, struct shca_hca *hcas,
				const struct shca_config *config)
{
	uint64_t at = ROUND_PAGE(sizeof(struct shca_fabric_header));

	for (unsigned i = 0; config->link_on && i < nhcas; i++) {
		if (hcas)
			hcas[i].ingress = at;
		at += ROUND_PAGE(sizeof(struct shca_calendar));
	}
	return at;
}

/* Fills in the places of calendars and tables. Returns the size of the header and all of them. */
static uint64_t place_tables(uint32_t nhcas, struct shca_hca *hcas,
			     const struct shca_config *config)
{
	uint64_t at = place_calendars(nhcas, hcas, config);
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

uint64_t shca_fabric_size(uint32_t nhcas, const struct shca_config *config)
{
	return place_tables(nhcas, NULL, config);
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
	hdr->config = *config;
	atomic_store(&hdr->owner_pid, getpid());
	snprintf(hdr->dir, sizeof(hdr->dir), "%s", dir);
	snprintf(hdr->command, sizeof(hdr->command), "%s", command ? command : "");
	if (getrandom(&hdr->seed, sizeof(hdr->seed), 0) != sizeof(hdr->seed))
		return -errno;
	rc = shca_lock_init(&hdr->ctl_lock);
	if (!rc && config->value[SHCA_O_CLOCK] == SHCA_CLOCK_VIRTUAL)
		rc = shca_actors_init(&hdr->clock, config);
	if (!rc)
		rc = fill_hcas(hdr);
	hdr->size = place_tables(hdr->nhcas, hdr->hcas, config);
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
	const uint64_t backed = place_calendars(nhcas, NULL, config);
	struct shca_fabric fabric = {.fd = -1};
	struct shca_fabric_header *hdr;
	char path[SHCA_PATH_ROOM], text[512];
	int rc;

	snprintf(path, sizeof(path), "%s/seg", dir);
	fabric.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fabric.fd < 0)
		return shca_fabric_fail(-errno, err, errlen, "The file %s can't be made (%s).",
					path, strerror(errno));
	rc = set_size(fabric.fd, shca_fabric_size(nhcas, config) + SHCA_MAX_PROCS * SHCA_ARENA);
	if (rc) {
		shca_fabric_fail(
			rc, err, errlen,
			"The file %s can't grow to the size of a fabric (%s): raise the file size "
			"limit (ulimit -f).",
			path, strerror(-rc));
		goto close;
	}
	rc = shca_space_back(fabric.fd, 0, backed);
	if (rc) {
		shca_space_text(dir, backed, text, sizeof(text));
		shca_fabric_fail(rc, err, errlen, "A fabric can't be made: there is %s.", text);
		goto close;
	}
	hdr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fabric.fd, 0);
	if (hdr == MAP_FAILED) {
		rc = shca_fabric_fail(-errno, err, errlen, "The file %s can't be mapped (%s).",
				      path, strerror(errno));
		goto close;
	}
	rc = fill_header(hdr, dir, config, command);
	snprintf(path, sizeof(path), "%s/monitor", dir);
	if (!rc && mkfifo(path, 0600))
		rc = -errno;
	if (!rc)
		rc = shca_sysfs_make(hdr);
	if (rc)
		shca_fabric_fail(rc, err, errlen, "The files of a fabric can't be made in %s (%s).",
				 dir, strerror(-rc));
	else
		atomic_store_explicit(&hdr->ready, 1, memory_order_release);
	munmap(hdr, len);
close:
	close(fabric.fd);
	return rc;
}

int shca_fabric_create(const char *dir, const struct shca_config *config, const char *command,
		       char *err, size_t errlen)
{
	int64_t nhcas = config->value[SHCA_O_NODES] * config->value[SHCA_O_DEVICES];
	char *path;
	int rc;

	if (nhcas < 1 || nhcas > SHCA_MAX_HCAS)
		return shca_fabric_fail(
			-EINVAL, err, errlen,
			"A fabric has 1 to %d HCAs, not %lld: ask for fewer nodes or devices.",
			SHCA_MAX_HCAS, (long long)nhcas);
	if (mkdir(dir, 0700))
		return shca_fabric_fail(-errno, err, errlen, "The directory %s can't be made (%s).",
					dir, strerror(errno));
	path = realpath(dir, NULL);
	if (!path) {
		rc = shca_fabric_fail(-errno, err, errlen,
				      "The directory %s can't be found again (%s).", dir,
				      strerror(errno));
		goto remove;
	}
	if (strlen(path) >= sizeof(((struct shca_fabric_header *)0)->dir)) {
		rc = shca_fabric_fail(-ENAMETOOLONG, err, errlen,
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
