/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When tq_open() fails, one sentence in the log says why: an unusable job directory, a full disk,
 * few descriptors, little memory. Under "softhca run".
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tupleq/tupleq.h>

#include "on_device.h"

#define KEY       7
#define FILE_NAME "tupleq-xrcd-0000000000000007"

static int failed, errors;
static char error[512];

static void result(const char *name, const char *why)
{
	failed += why != NULL;
	printf("%sok %s%s%s\n", why ? "not " : "", name, why ? " - " : "", why ? why : "");
	fflush(stdout);
}

static void log_text(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	if (level != TQ_LOG_ERROR)
		return;
	if (!errors++)
		snprintf(error, sizeof(error), "%s", text);
}

static void complete(void *user, const struct tq_status *status)
{
	(void)user;
	(void)status;
}

/* Opens an endpoint and closes it. */
static int try_open(const char *dir)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {
		.key = KEY, .dir = dir, .name = "a test", .log = log_text, .complete = complete};
	struct tq_ep *ep;
	int rc;

	if (!params)
		return -ENOMEM;
	on_device_set(params);
	rc = tq_open(params, &job, NULL, &ep);
	if (!rc)
		tq_close(ep);
	tq_params_free(params);
	return rc;
}

static void refused(const char *name, const char *dir)
{
	char why[700] = "";
	int rc;

	errors = 0;
	rc = try_open(dir);
	if (!rc)
		snprintf(why, sizeof(why), "it was opened");
	else if (errors != 1)
		snprintf(why, sizeof(why), "%d sentences", errors);
	else if (!strstr(error, dir))
		snprintf(why, sizeof(why), "the sentence doesn't name it: %s", error);
	else
		fprintf(stderr, "# %s\n", error);
	result(name, why[0] ? why : NULL);
}

/* ---- file systems ---- */

static bool no_flock;

/* Replaces flock(). With no_flock the file system has no locks, as Lustre without "-o flock". */
int flock(int fd, int operation)
{
	if (!no_flock)
		return (int)syscall(SYS_flock, fd, operation);
	errno = ENOSYS;
	return -1;
}

/* Mounts a file system on which no file can be made, for this process alone. */
static bool mounted(const char *dir, unsigned long flags, const char *options)
{
	return !unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", dir, "tmpfs", flags, options);
}

static void on_disk(const char *name, const char *dir, unsigned long flags, const char *options)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		failed = 0;
		if (mounted(dir, flags, options))
			refused(name, dir);
		else
			printf("ok %s # SKIP a file system can't be mounted: %s\n", name,
			       strerror(errno));
		fflush(stdout);
		_exit(failed);
	}
	waitpid(pid, &status, 0);
	failed += status != 0;
}

/* ---- limits ---- */

/*
 * Opens an endpoint under higher and higher limits of a resource, each time in a process of its
 * own: tq_open() succeeds, or says in one sentence why not. At least one limit must be high enough.
 */
static void limited(const char *name, int resource, rlim_t least, rlim_t step, int steps,
		    const char *dir)
{
	int opened = 0, status;
	char why[100] = "";

	for (int i = 0; i < steps && !why[0]; i++) {
		rlim_t n = least + step * (rlim_t)i;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			struct rlimit limit = {n, n};
			int rc;

			errors = 0;
			setrlimit(resource, &limit);
			rc = try_open(dir);
			_exit(!rc ? 0 : errors == 1 ? 1 : 2);
		}
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status))
			snprintf(why, sizeof(why), "with %llu: %s", (unsigned long long)n,
				 strsignal(WTERMSIG(status)));
		else if (WEXITSTATUS(status) == 2)
			snprintf(why, sizeof(why),
				 "with %llu it doesn't open and has not one sentence for it",
				 (unsigned long long)n);
		opened += !WEXITSTATUS(status);
	}
	if (!why[0] && !opened)
		snprintf(why, sizeof(why), "it never opened");
	result(name, why[0] ? why : NULL);
}

/* The sanitizers map more memory than the limits allow. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WITH_ADDRESS_SPACE
static rlim_t address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}
#endif

int main(void)
{
	char dir[] = "/tmp/tupleq-test-XXXXXX", path[100], file[100];
	int fd;

	if (!mkdtemp(dir)) {
		perror("mkdtemp");
		return 1;
	}
	snprintf(path, sizeof(path), "%s/none", dir);
	snprintf(file, sizeof(file), "%s/" FILE_NAME, dir);
	refused("a job directory that isn't there", path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	refused("a job directory that is a file", path);
	if (symlink(path, file))
		perror("symlink");
	refused("a symbolic link for the XRC domain", dir);
	unlink(file);
	unlink(path);
	close(fd);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	fchmod(fd, 0644);
	refused("a file for the XRC domain that others may open", dir);
	unlink(file);
	close(fd);
	no_flock = true;
	refused("a file system without flock()", dir);
	no_flock = false;
	unlink(file);
	on_disk("a full file system", dir, 0, "nr_inodes=1");
	on_disk("a file system that can't be written", dir, MS_RDONLY, NULL);
	limited("few descriptors", RLIMIT_NOFILE, 3, 1, 24, dir);
	limited("little locked memory", RLIMIT_MEMLOCK, 0, 512 << 10, 40, dir);
#ifdef WITH_ADDRESS_SPACE
	limited("little memory", RLIMIT_AS, address_space(), 64 << 20, 80, dir);
#endif
	limited("files of no size", RLIMIT_FSIZE, 0, 0, 1, dir);
	if (rmdir(dir))
		result("nothing is left", strerror(errno));
	return failed != 0;
}
