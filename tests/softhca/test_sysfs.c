/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sysfs.c - /sys/class/infiniband as programs see it by each function of libc that takes a
 * path, compared with the verbs. Other paths are left alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* statx(), and the functions that end in 64 */
#endif
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define CLASS "/sys/class/infiniband"

/* Functions that -D_FORTIFY_SOURCE makes of open() and openat(). */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

static struct t_dev *dev;
static int speed_code = 32;
static char rate[64] = "100 Gb/sec (4X EDR)";
static char node_type[128]; /* a file of the device, which holds "1: CA" */

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	snprintf(node_type, sizeof(node_type), CLASS "/%s/node_type",
		 ibv_get_device_name(dev->ctx->device));
	return 0;
}

/* Returns the line in the file `format` below the device. */
__attribute__((format(printf, 1, 2))) static const char *line(const char *format, ...)
{
	static char text[128];
	char path[256];
	int n = snprintf(path, sizeof(path), CLASS "/%s/", ibv_get_device_name(dev->ctx->device));
	va_list ap;
	FILE *f;

	va_start(ap, format);
	vsnprintf(path + n, sizeof(path) - (size_t)n, format, ap);
	va_end(ap);
	f = fopen(path, "r");
	t_true(f, "%s: %s", path, strerror(errno));
	t_true(fgets(text, sizeof(text), f), "%s is empty", path);
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void test_values(void **state)
{
	const struct ibv_device_attr *attr = &dev->attr.orig_attr;
	struct ibv_port_attr *port = &dev->port;
	union ibv_gid gid;
	char text[64];
	__be16 pkey;

	(void)state;
	t_str_eq(line("fw_ver"), attr->fw_ver);
	t_eq(strtoul(line("hw_rev"), NULL, 0), attr->hw_ver);
	t_eq(atoi(line("node_type")), dev->ctx->device->node_type);
	t_eq(atoi(line("ports/1/state")), port->state);
	t_eq(atoi(line("ports/1/phys_state")), port->phys_state);
	t_eq(strtoul(line("ports/1/lid"), NULL, 0), port->lid);
	t_eq(strtoul(line("ports/1/sm_lid"), NULL, 0), port->sm_lid);
	t_eq(strtoul(line("ports/1/sm_sl"), NULL, 0), port->sm_sl);
	t_eq(strtoul(line("ports/1/lid_mask_count"), NULL, 0), port->lmc);
	t_eq(strtoul(line("ports/1/cap_mask"), NULL, 0), port->port_cap_flags);
	t_str_eq(line("ports/1/link_layer"), dev->roce ? "Ethernet" : "InfiniBand");
	/* Four lanes (code 2); of EDR (code 32), unless the link model has another bandwidth. */
	t_eq(port->active_width, 2);
	t_eq(port->active_speed, speed_code);
	t_str_eq(line("ports/1/rate"), rate);
	for (int i = 0; !ibv_query_gid(dev->ctx, 1, i, &gid) && gid.global.interface_id; i++) {
		for (unsigned k = 0; k < 8; k++)
			snprintf(text + 5 * k, sizeof(text) - 5 * k, "%02x%02x:", gid.raw[2 * k],
				 gid.raw[2 * k + 1]);
		text[39] = '\0';
		t_str_eq(line("ports/1/gids/%d", i), text);
	}
	for (int i = 0; i < port->pkey_tbl_len; i++) {
		t_ok(ibv_query_pkey(dev->ctx, 1, i, &pkey));
		t_eq(strtoul(line("ports/1/pkeys/%d", i), NULL, 0),
		     (unsigned)((const uint8_t *)&pkey)[0] << 8 | ((const uint8_t *)&pkey)[1]);
	}
}

static void reads(int fd)
{
	char text[8] = "";

	t_true(fd >= 0, "open: %s", strerror(errno));
	t_eq(read(fd, text, 6), 6);
	t_str_eq(text, "1: CA\n");
	close(fd);
}

static void closes(FILE *f)
{
	t_true(f, "fopen: %s", strerror(errno));
	reads(dup(fileno(f)));
	fclose(f);
}

static void test_files(void **state)
{
	struct stat64 st64;
	struct statx stx;
	struct stat st;

	(void)state;
	reads(open(node_type, O_RDONLY));
	reads(open64(node_type, O_RDONLY));
	reads(__open_2(node_type, O_RDONLY));
	reads(__open64_2(node_type, O_RDONLY));
	reads(openat(AT_FDCWD, node_type, O_RDONLY));
	reads(openat64(AT_FDCWD, node_type, O_RDONLY));
	reads(__openat_2(AT_FDCWD, node_type, O_RDONLY));
	reads(__openat64_2(AT_FDCWD, node_type, O_RDONLY));
	closes(fopen(node_type, "r"));
	closes(fopen64(node_type, "r"));
	t_ok(stat(node_type, &st));
	t_true(S_ISREG(st.st_mode), "not a file");
	t_ok(stat64(node_type, &st64));
	t_ok(lstat(node_type, &st));
	t_ok(lstat64(node_type, &st64));
	t_ok(fstatat(AT_FDCWD, node_type, &st, 0));
	t_ok(fstatat64(AT_FDCWD, node_type, &st64, 0));
	t_ok(statx(AT_FDCWD, node_type, 0, STATX_BASIC_STATS, &stx));
	t_ok(access(node_type, R_OK));
	t_ok(eaccess(node_type, R_OK));
	t_ok(euidaccess(node_type, R_OK));
	t_ok(faccessat(AT_FDCWD, node_type, R_OK, AT_EACCESS));
}

static int is_ours(const struct dirent *entry)
{
	return !strcmp(entry->d_name, ibv_get_device_name(dev->ctx->device));
}

static int is_ours64(const struct dirent64 *entry)
{
	return !strcmp(entry->d_name, ibv_get_device_name(dev->ctx->device));
}

static void test_directories(void **state)
{
	struct dirent **list = NULL, *entry;
	struct dirent64 **list64 = NULL;
	char cwd[PATH_MAX], real[PATH_MAX];
	bool seen = false;
	glob64_t found64;
	glob_t found;
	DIR *d = opendir(CLASS);

	(void)state;
	t_true(d, "opendir: %s", strerror(errno));
	while ((entry = readdir(d)))
		seen |= is_ours(entry);
	closedir(d);
	t_true(seen, "the device isn't listed");
	t_eq(scandir(CLASS, &list, is_ours, alphasort), 1);
	free(list[0]);
	free(list);
	t_eq(scandir64(CLASS "/", &list64, is_ours64, alphasort64), 1);
	free(list64[0]);
	free(list64);
	t_ok(glob(CLASS "/*/node_type", 0, NULL, &found));
	t_true(found.gl_pathc >= 1, "glob found nothing");
	reads(open(found.gl_pathv[0], O_RDONLY));
	globfree(&found);
	t_ok(glob64(CLASS "/*/node_type", 0, NULL, &found64));
	globfree64(&found64);
	t_true(realpath(node_type, real), "realpath: %s", strerror(errno));
	reads(open(real, O_RDONLY));
	t_true(getcwd(cwd, sizeof(cwd)), "getcwd: %s", strerror(errno));
	t_ok(chdir(CLASS));
	t_ok(access(ibv_get_device_name(dev->ctx->device), R_OK));
	t_ok(chdir(cwd));
	t_ok(access(CLASS "_verbs/abi_version", R_OK));
	t_ok(access(CLASS "_mad/abi_version", R_OK));
}

/* Checks that files can be neither written nor created, because all processes of the fabric share
 * them. */
static void test_read_only(void **state)
{
	static const int ways[] = {O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_RDONLY | O_TRUNC,
				   O_WRONLY | O_CREAT | O_APPEND};
	char path[160];
	struct stat st;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s_2", node_type);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		t_true(open(node_type, ways[i], 0600) < 0 && errno == EACCES, "errno %d", errno);
		t_true(openat64(AT_FDCWD, node_type, ways[i], 0600) < 0 && errno == EACCES,
		       "errno %d", errno);
	}
	t_true(__open_2(node_type, O_WRONLY) < 0 && errno == EACCES, "errno %d", errno);
	t_true(open64(path, O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES, "errno %d", errno);
	f = fopen(node_type, "w");
	t_true(!f && errno == EACCES, "errno %d", errno);
	f = fopen64(node_type, "r+");
	t_true(!f && errno == EACCES, "errno %d", errno);
	t_ok(stat(node_type, &st));
	t_eq(st.st_mode & 0222, 0);
	reads(open(node_type, O_RDONLY));
}

/* Checks that everything else goes to libc unchanged, errors, modes and errno included. */
static void test_others(void **state)
{
	/* By their addresses, because compilers and sanitizers know that both accept no null. */
	int (*volatile open_it)(const char *, int, ...) = open;
	int (*volatile stat_it)(const char *, struct stat *) = stat;
	char path[] = "/tmp/test_sysfs.XXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	(void)state;
	t_true(fd >= 0, "mkstemp: %s", strerror(errno));
	close(fd);
	t_ok(unlink(path));
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0640);
	t_true(fd >= 0, "open: %s", strerror(errno));
	close(fd);
	t_ok(stat(path, &st));
	t_eq(st.st_mode & 0777 & ~(mode_t)022, 0640);
	t_ok(unlink(path));
	fd = openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	t_true(fd >= 0, "openat: %s", strerror(errno));
	close(fd);
	t_ok(unlink(path));
	t_true(open(path, O_RDONLY) < 0 && errno == ENOENT, "errno %d", errno);
	t_true(open_it(NULL, O_RDONLY) < 0 && errno == EFAULT, "errno %d", errno);
	t_true(stat_it(NULL, &st) < 0 && errno == EFAULT, "errno %d", errno);
	t_true(access(CLASS "_of_others", F_OK) < 0 && errno == ENOENT, "errno %d", errno);
	t_true(access(CLASS "/nobody", F_OK) < 0 && errno == ENOENT, "errno %d", errno);
	t_ok(access("/sys/class", F_OK));
	errno = 77;
	t_ok(access(CLASS, F_OK));
	t_eq(errno, 77);
}

/* test_sysfs [CODE RATE NAME]: the speed that the port should have, as 64 200 HDR; EDR. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),      cmocka_unit_test(test_files),
		cmocka_unit_test(test_directories), cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_others),
	};

	if (argc == 4) {
		speed_code = atoi(argv[1]);
		snprintf(rate, sizeof(rate), "%s Gb/sec (4X %s)", argv[2], argv[3]);
	}
	return cmocka_run_group_tests(tests, setup, t_teardown);
}
