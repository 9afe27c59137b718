/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.c - watching the processes of a fabric through pidfds: the kernel tells when one ends, so
 * that what it leaves is freed at once, even if no peer is waiting for it. The kernel doesn't tell
 * when a process replaces its program (exec): those are looked for at times.
 */
#define _GNU_SOURCE 1
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fabric/proc.h"
#include "fabric/reap.h"
#include "stall.h"
#include "watch.h"
#include "world.h"

#define LOOK_EACH_MS \
	500       /* between looks whether running processes still are the ones that attached */
#define EVENTS 64 /* taken at once */

enum { AT_ALIVE, AT_FIFO, AT_PROCS };

struct monitor {
	struct shca_fabric *fabric;
	int err; /* the launcher's standard error output, in virtual time */
	int set; /* epoll: the price of a look doesn't grow with the number of processes */
	int fds[AT_PROCS + SHCA_MAX_PROCS]; /* in the set; -1: none */
};

static int add(struct monitor *monitor, unsigned at, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = at};

	monitor->fds[at] = fd;
	return epoll_ctl(monitor->set, EPOLL_CTL_ADD, fd, &e);
}

/* Closes a descriptor, which takes it out of the set, too, because there is no copy of it. */
static void forget(struct monitor *monitor, unsigned at)
{
	if (monitor->fds[at] >= 0)
		close(monitor->fds[at]);
	monitor->fds[at] = -1;
}

static void ended(struct monitor *monitor, unsigned slot)
{
	forget(monitor, AT_PROCS + slot);
	if (shca_proc_alive(monitor->fabric, slot) && !shca_proc_running(monitor->fabric, slot))
		shca_reap(monitor->fabric, slot);
	/* The process may have been reaping another one when it ended. */
	shca_reap_all(monitor->fabric);
}

static void watch(struct monitor *monitor, unsigned slot)
{
	int fd;

	forget(monitor, AT_PROCS + slot);
	if (!shca_proc_alive(monitor->fabric, slot))
		return;
	fd = pidfd_open(atomic_load(&monitor->fabric->hdr->procs[slot].pid), 0);
	if (fd >= 0)
		add(monitor, AT_PROCS + slot, fd);
	/* If the process still runs now, the descriptor is its own and not that of a later
	 * process with its pid. */
	if (!shca_proc_running(monitor->fabric, slot))
		ended(monitor, slot);
}

static void read_slots(struct monitor *monitor)
{
	uint32_t slots[64];
	ssize_t n = read(monitor->fds[AT_FIFO], slots, sizeof(slots));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(slots[0]); i++) {
		if (slots[i] < SHCA_MAX_PROCS)
			watch(monitor, slots[i]);
	}
}

/* Makes a session of its own, without a terminal, a folder or a stream that anybody would wait
 * for. */
static void detach(void)
{
	static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (chdir("/"))
		_exit(errno);
	prctl(PR_SET_NAME, "softhca-monitor");
}

bool shca_monitor_can_watch(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= SHCA_MONITOR_FILES;
}

/* Lets this process have as many descriptors as the kernel allows: one for each process of the
 * fabric, and in virtual time one for each thread of the job. poll() refuses more than the limit.
 */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool any_watched(const struct monitor *monitor)
{
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		if (monitor->fds[AT_PROCS + i] >= 0)
			return true;
	return false;
}

static int patience(const struct monitor *monitor)
{
	if (!any_watched(monitor))
		return -1;
	return shca_fabric_clock(monitor->fabric) ? SHCA_WATCH_EACH_MS : LOOK_EACH_MS;
}

static void look_at_all(struct monitor *monitor)
{
	shca_reap_all(monitor->fabric);
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		if (!shca_proc_alive(monitor->fabric, i))
			forget(monitor, AT_PROCS + i);
}

/* Handles the descriptors' events. Returns false if the launcher has ended. */
static bool handle(struct monitor *monitor, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 == AT_ALIVE)
			return false;
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 >= AT_PROCS)
			ended(monitor, events[i].data.u32 - AT_PROCS);
	for (int i = 0; i < n; i++)
		if (events[i].data.u32 == AT_FIFO)
			read_slots(monitor);
	return true;
}

/* Watches until the launcher has ended. Returns 0 then, or an errno value if that isn't possible.
 */
static int run(struct monitor *monitor)
{
	struct shca_watch watch_turn = {0};
	struct shca_stall stall = {.err = monitor->err};
	bool answers = false;
	uint64_t looked = shca_real_now();

	/* Processes that attached before, while a monitor that was killed could not be told. */
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		watch(monitor, i);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(monitor->set, events, EVENTS, patience(monitor));
		int error = n < 0 ? errno : 0;

		if (any_watched(monitor) && shca_fabric_clock(monitor->fabric)) {
			/* Started before it is needed: a thread waits for the real world only
			 * once it has joined. */
			answers = answers || !shca_world_start(monitor->fabric);
			shca_watch_look(monitor->fabric, &watch_turn);
			shca_stall_look(monitor->fabric, &stall);
		}
		/* Without the set nobody would notice the end of anything: the fabric ends. */
		if (error && error != EINTR)
			return error;
		if (error)
			continue;
		if (shca_real_now() - looked >= LOOK_EACH_MS * 1000000ULL) {
			look_at_all(monitor);
			looked = shca_real_now();
		}
		if (!handle(monitor, events, n))
			return 0;
	}
}

pid_t shca_monitor_start(struct shca_fabric *fabric, int fifo, const int alive[2])
{
	struct monitor monitor = {.fabric = fabric};
	unsigned killed;
	pid_t pid = fork();
	int error;

	if (pid)
		return pid < 0 ? -errno : pid;
	close(alive[1]);
	/* Nobody waits for the monitor to close it: the monitor ends with the launcher. */
	monitor.err = shca_fabric_clock(fabric) ? fcntl(2, F_DUPFD_CLOEXEC, 3) : -1;
	detach();
	raise_descriptors();
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		monitor.fds[AT_PROCS + i] = -1;
	monitor.set = epoll_create1(EPOLL_CLOEXEC);
	if (monitor.set >= 0 && !add(&monitor, AT_ALIVE, alive[0]) && !add(&monitor, AT_FIFO, fifo))
		error = run(&monitor);
	else
		error = errno;
	killed = shca_watch_end(fabric);
	/* The launcher, if it still runs, gives the reason. */
	if (killed)
		dprintf(monitor.err,
			"softhca: %s, so %u of its processes, which were in virtual time, have "
			"been killed.\n",
			error ? "The fabric has ended" : "softhca run was killed", killed);
	shca_fabric_remove(fabric->hdr->dir);
	_exit(error);
}
