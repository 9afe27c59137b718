/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_run.c - softhca run: a fabric, its monitor, the command in it, and the end of all three.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captures.h"
#include "child.h"
#include "cmd.h"
#include "fabric/recording.h"
#include "fabrics.h"
#include "fail.h"
#include "library.h"
#include "loads.h"
#include "monitor.h"
#include "plugins.h"
#include "procfs.h"
#include "settings.h"
#include "traces.h"
#include "watch.h"

/* A link of today, for virtual time. */
#define DEFAULT_LINK     "latency=600ns,bandwidth=25GB/s"
#define MONITOR_RESTARTS 8 /* restarts of a killed monitor; more would be a loop */

struct run {
	struct shca_settings settings;
	char **command;
	char library[PATH_MAX];
	char dir[SHCA_DIR_LEN];
	int lock;
	int fifo;
	int alive[2]; /* the monitor reads EOF when this process, and with it the writing end, is
			 gone */
	pid_t monitor;
	int restarts;
	struct shca_fabric fabric;
	struct shca_parts trace, capture;
	struct shca_signals signals;
	struct shca_witness witness;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &run->settings;
		return 0;
	case ARGP_KEY_ARG:
		/* Arguments behind the command's name are the command's. */
		(void)arg;
		run->command = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command to run");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Stores the command line as list and stat show it. */
static void command_text(char **argv, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (; *argv && used < len; argv++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s", used ? " " : "", *argv);
}

static int open_fifo(struct run *run)
{
	char path[SHCA_DIR_LEN + 16];

	snprintf(path, sizeof(path), "%s/monitor", run->dir);
	/* Open for writing too: the reader then gets no EOF between two writers. */
	run->fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (run->fifo < 0 || pipe2(run->alive, O_CLOEXEC))
		return -errno;
	return 0;
}

static int start_monitor(struct run *run)
{
	run->monitor = shca_monitor_start(&run->fabric, run->fifo, run->alive);
	return run->monitor < 0 ? run->monitor : 0;
}

/* Handles the end of a child other than the command. Starts the monitor again if it was killed. */
static void other_child(void *arg, const siginfo_t *how)
{
	bool killed = how->si_code != CLD_EXITED;
	struct run *run = arg;

	if (how->si_pid == run->witness.pid)
		run->witness.pid = 0;
	if (how->si_pid != run->monitor)
		return;
	run->monitor = 0;
	if (!killed && how->si_status)
		shca_fail(0,
			  "The fabric's monitor can't watch its processes (%s), so the fabric has "
			  "ended.",
			  strerror(how->si_status));
	if (killed && run->restarts++ < MONITOR_RESTARTS && start_monitor(run))
		run->monitor = 0;
	if (killed && !run->monitor)
		shca_fail(0, "The fabric's monitor was killed too often: what processes leave "
			     "behind is only freed when others need it.");
}

static int set_environment(const struct run *run)
{
	int rc;

	if (setenv(SHCA_ENV_FABRIC, run->dir, 1))
		return -errno;
	rc = shca_plugins_environment(run->library);
	if (rc)
		return rc;
	return shca_library_preload(run->library,
				    run->settings.config.value[SHCA_O_CLOCK] == SHCA_CLOCK_VIRTUAL);
}

/* Gives the command the same addresses in each run, if runs can be repeated: addresses decide the
 * order in a hash table, and how many pages a buffer touches. */
static void fix_addresses(const struct run *run)
{
	const int64_t *v = run->settings.config.value;
	int now = personality(0xffffffff), error;
	char randomize[16];

	if (v[SHCA_O_CLOCK] != SHCA_CLOCK_VIRTUAL || v[SHCA_O_CLOCK_CPU])
		return;
	if (now >= 0 && personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		return;
	error = errno;
	if (shca_procfs_read("/proc/sys/kernel/randomize_va_space", randomize, sizeof(randomize)) >
		    0 &&
	    *randomize == '0')
		return;
	fprintf(stderr,
		"softhca: Addresses stay random, because personality() is refused (%s), so two "
		"runs "
		"may differ: allow it (container seccomp), or set kernel.randomize_va_space to "
		"0.\n",
		strerror(error));
}

static void report_clock(const struct run *run)
{
	const struct shca_clock *clock = shca_fabric_clock(&run->fabric);
	unsigned long long taken;

	if (!clock || !shca_opt(&run->fabric, SHCA_O_CLOCK_REPORT))
		return;
	fprintf(stderr,
		"softhca: %.9f s of virtual time, %llu sync points, %llu turns, hash %016llx\n",
		(double)(atomic_load(&clock->now) - clock->zero) / 1e9,
		(unsigned long long)atomic_load(&clock->syncs),
		(unsigned long long)atomic_load(&clock->turns),
		(unsigned long long)atomic_load(&clock->hash));
	fprintf(stderr,
		"softhca: programs used %.3f s of CPU time; %llu waits for the real world, %llu of "
		"them for all processes\n",
		(double)atomic_load(&clock->cpu_sum) / 1e9,
		(unsigned long long)atomic_load(&clock->waits_for_world),
		(unsigned long long)atomic_load(&clock->waits_for_all));
	taken = (unsigned long long)atomic_load(&clock->taken);
	if (taken)
		fprintf(stderr,
			"softhca: %llu turns were taken away from threads that computed for longer "
			"than --clock-quantum or slept in the kernel: another run may differ.\n",
			taken);
	if (!clock->sees_writes)
		fprintf(stderr,
			"softhca: the kernel doesn't tell of writes to shared memory, so threads "
			"that wait for them there see them late: see --clock-look\n");
}

/* Ends the processes that the command has left in virtual time. */
static void end_leftovers(const struct run *run)
{
	unsigned n = shca_watch_end(&run->fabric);

	if (n)
		fprintf(stderr,
			"softhca: %s ended before %u of its processes, which were in virtual time "
			"and have been killed.\n",
			run->command[0], n);
}

/* ---------------------------------------------------------------- recordings */

static void drop_recordings(struct run *run)
{
	shca_parts_drop(&run->trace);
	shca_parts_drop(&run->capture);
}

static int begin_recordings(struct run *run, char *err, size_t errlen)
{
	const struct shca_config *config = &run->settings.config;
	const char *trace = config->text[SHCA_O_TRACE], *capture = config->text[SHCA_O_PCAP];
	int rc = *trace ? shca_parts_begin(&run->trace, "trace", trace, err, errlen) : 0;

	if (!rc && *capture)
		rc = shca_parts_begin(&run->capture, "capture", capture, err, errlen);
	if (rc)
		drop_recordings(run);
	return rc;
}

static int link_recordings(const struct run *run)
{
	int rc = shca_parts_link(&run->trace, run->dir, SHCA_TRACE_LINK);

	return rc ? rc : shca_parts_link(&run->capture, run->dir, SHCA_CAPTURE_LINK);
}

static void end_recordings(struct run *run)
{
	char err[512];

	if (run->trace.what &&
	    shca_parts_end(&run->trace, shca_traces_write(&run->trace), err, sizeof(err)))
		shca_fail(0, "%s", err);
	if (run->capture.what &&
	    shca_parts_end(&run->capture, shca_captures_write(&run->capture, &run->fabric), err,
			   sizeof(err)))
		shca_fail(0, "%s", err);
}

/* ---------------------------------------------------------------- the run */

/* Removes the fabric, and ends the monitor, which may be stopped or busy. */
static void tear_down(struct run *run)
{
	int rc;

	end_leftovers(run);
	end_recordings(run);
	rc = shca_fabric_remove(run->dir);
	report_clock(run);
	if (rc && rc != -ENOENT)
		shca_fail(0, "The fabric %s can't be removed: %s.", run->dir, strerror(-rc));
	if (run->monitor > 0) {
		kill(run->monitor, SIGKILL);
		waitpid(run->monitor, NULL, 0);
	}
	shca_fabric_detach(&run->fabric);
}

static int run_in_fabric(struct run *run)
{
	struct shca_child child = {.other = other_child, .arg = run, .witness = &run->witness};
	char err[512];
	int rc, status;

	if (shca_fabric_attach(run->dir, &run->fabric, err, sizeof(err))) {
		shca_fabric_remove(run->dir);
		drop_recordings(run);
		return shca_fail(SHCA_EXIT_LAUNCHER, "%s", err);
	}
	rc = open_fifo(run);
	if (rc == 0)
		rc = link_recordings(run);
	if (rc == 0)
		rc = start_monitor(run);
	if (rc == 0)
		rc = set_environment(run);
	fix_addresses(run);
	if (rc == 0)
		rc = shca_child_start(&child, &run->signals, run->command);
	if (rc)
		status = shca_fail(SHCA_EXIT_LAUNCHER,
				   "The command %s can't be started in a fabric: %s.",
				   run->command[0], strerror(-rc));
	else
		status = shca_child_wait(&child, &run->signals);
	if (child.signal)
		shca_fail(0, "%s was ended by signal %d (%s).", run->command[0], child.signal,
			  strsignal(child.signal));
	tear_down(run);
	return status;
}

/* Makes the file of --clock-log, whose name is to mean the same file wherever processes run. */
static int make_log(struct shca_config *config, char *err, size_t errlen)
{
	char *name = config->text[SHCA_O_CLOCK_LOG], path[PATH_MAX];
	int fd;

	if (!*name)
		return 0;
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || !realpath(name, path)) {
		snprintf(err, errlen, "--clock-log: %s can't be written: %s.", name,
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	close(fd);
	return shca_config_set(config, SHCA_O_CLOCK_LOG, path, "--clock-log", err, errlen);
}

/* Sets the default link of virtual time, because messages that take no time are of little use. An
 * explicit "off" is obeyed. */
static int set_default_link(struct shca_settings *settings, char *err, size_t errlen)
{
	struct shca_config *config = &settings->config;

	if (settings->origin[SHCA_O_LINK] != SHCA_FROM_DEFAULT)
		return 0;
	if (shca_config_set(config, SHCA_O_LINK, DEFAULT_LINK, "default", err, errlen) ||
	    shca_config_finish(config, err, errlen))
		return -EINVAL;
	fprintf(stderr, "softhca: The clock is virtual and no link is given: --link " DEFAULT_LINK
			" is taken.\n");
	return 0;
}

/* Sets the default link of virtual time, and warns of programs that ignore LD_PRELOAD. */
static int prepare_clock(struct run *run, char *err, size_t errlen)
{
	if (run->settings.config.value[SHCA_O_CLOCK] != SHCA_CLOCK_VIRTUAL)
		return 0;
	shca_loads_warn(run->command);
	return set_default_link(&run->settings, err, errlen);
}

int shca_cmd_run(int argc, char **argv)
{
	static const char doc[] =
		"Runs CMD in a fabric of virtual InfiniBand adapters of its own.\vEach option is "
		"also an environment variable (--cq-arm is SOFTHCA_CQ_ARM) and a line of the "
		"configuration file (cq-arm = new). The command line comes before the "
		"environment, that before the file. The file is FILE, else $SOFTHCA_CONFIG, else "
		"~/.config/softhca.conf, else /etc/softhca.conf. The exit status is that of CMD.";
	struct argp_child children[] = {{shca_settings_argp(), 0, NULL, 0}, {0}};
	const struct argp argp = {
		.parser = parse, .args_doc = "-- CMD [ARG...]", .doc = doc, .children = children};
	static struct run run = {.lock = -1, .fifo = -1, .alive = {-1, -1}};
	struct shca_listings left;
	char err[1024], text[128];
	int status;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);
	if (shca_settings_load(&run.settings, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_USAGE, "%s", err);
	if (prepare_clock(&run, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_USAGE, "%s", err);
	if (make_log(&run.settings.config, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_USAGE, "%s", err);
	if (shca_library_find(run.library, sizeof(run.library), err, sizeof(err)))
		return shca_fail(SHCA_EXIT_LAUNCHER, "%s", err);
	if (!shca_monitor_can_watch())
		return shca_fail(SHCA_EXIT_LAUNCHER,
				 "The limit of open files is too low to watch the processes of a "
				 "fabric: raise it (ulimit -n) to %u at least.",
				 SHCA_MONITOR_FILES);
	if (begin_recordings(&run, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_LAUNCHER, "%s", err);
	/* Done before there is anything to clean up. */
	shca_signals_hold(&run.signals);
	shca_witness_start(&run.witness, &run.signals.handled);
	/* Memory of dead fabrics may be needed for this one. */
	if (shca_fabrics_list(&left) == 0)
		shca_fabrics_free(&left);
	command_text(run.command, text, sizeof(text));
	run.lock = shca_fabrics_create(&run.settings.config, text, run.dir, sizeof(run.dir), err,
				       sizeof(err));
	if (run.lock < 0)
		drop_recordings(&run);
	status = run.lock < 0 ? shca_fail(SHCA_EXIT_LAUNCHER, "%s", err) : run_in_fabric(&run);
	shca_witness_end(&run.witness);
	return status;
}
