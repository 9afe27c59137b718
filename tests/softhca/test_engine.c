/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engine.c [CPU] - the engine thread exists while a device is open, and runs where
 * --engine-cpus says: on the CPU of the argument, else (there is no such CPU, or no option)
 * wherever the process may run.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <sched.h>
#include <time.h>

#include "stat.h"
#include "util.h"

static int cpu = -1;

/* Returns the engine's thread id, or 0 if there is none. Fails if there are two. */
static pid_t engine(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	t_true(tasks, "/proc/self/task: %s", strerror(errno));
	while ((entry = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strncmp(name, "softhca-engine", 14)) {
			t_true(!found, "two engines");
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		}
		fclose(f);
	}
	closedir(tasks);
	return found;
}

static void test_cpus(void **state)
{
	cpu_set_t is, want;
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, NULL, NULL, 1u << 20);
	struct ibv_sge in = t_sge(&p.bb, 0, 1u << 20);
	pid_t tid;

	(void)state;
	/* The engine has worked by then, so its thread has its name. */
	t_recv(p.b, 1, &in, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 1u << 20));
	t_done(p.a->scq, 1, IBV_WC_SEND);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	tid = engine();
	t_true(tid, "there is no engine");
	t_ok(sched_getaffinity(tid, sizeof(is), &is));
	if (cpu < 0) {
		t_ok(sched_getaffinity(0, sizeof(want), &want));
	} else {
		CPU_ZERO(&want);
		CPU_SET((unsigned)cpu, &want);
	}
	t_true(CPU_EQUAL(&is, &want), "it may run on %d CPUs, wanted are %d", CPU_COUNT(&is),
	       CPU_COUNT(&want));
	t_pair_free(&p);
	t_close(dev);
}

/* Returns how long (ms) a thread of this process has run. */
static double cpu_ms(pid_t tid)
{
	char path[64];
	unsigned long long ns;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "r");
	t_true(f && fscanf(f, "%llu", &ns) == 1, "%s: %s", path, strerror(errno));
	fclose(f);
	return (double)ns / 1e6;
}

/* Checks that a message which waits for its receive leaves the CPUs to the application, however
 * short the RNR timer is, and counts the NAKs that an adapter would have got. */
static void test_held(void **state)
{
	enum { HELD_MS = 500 };
	const struct timespec held = {.tv_nsec = HELD_MS * 1000000};
	struct t_dev *dev = t_open();
	struct t_params pr = t_params(dev);
	struct t_pair p;
	struct ibv_sge to;
	uint64_t t0, naks;
	double before, ran, ms;

	(void)state;
	pr.min_rnr_timer = 1;
	pr.rnr_retry = 7;
	p = t_pair(dev, NULL, &pr, 64);
	to = t_sge(&p.bb, 0, 64);
	naks = stat_counter("rnr_naks");
	t0 = t_now();
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	before = cpu_ms(engine());
	nanosleep(&held, NULL);
	ran = cpu_ms(engine()) - before;
	ms = t_ms_since(t0);
	t_true(ran < ms / 4, "the engine ran for %.1f of %.1f ms", ran, ms);
	t_recv(p.b, 2, &to, 1);
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	/* Roughly one every 10 us, and no more than fit into the time so far. */
	naks = stat_counter("rnr_naks") - naks;
	t_true(naks > HELD_MS * 50 && (double)naks <= 100 * t_ms_since(t0),
	       "%llu RNR NAKs in %.1f ms", (unsigned long long)naks, ms);
	t_pair_free(&p);
	t_close(dev);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpus),
					   cmocka_unit_test(test_held)};

	if (argc > 1)
		cpu = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
