/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_cpus.c - where a program's threads may run: what they ask and set is what they would have
 * without virtual time, and so is what a new thread or process gets.
 */
#define _GNU_SOURCE 1
#include "next_cpus.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "next.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                          \
	FN(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t * set))                  \
	FN(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set))             \
	FN(int, pthread_getaffinity_np, (pthread_t thread, size_t size, cpu_set_t * set))      \
	FN(int, pthread_setaffinity_np, (pthread_t thread, size_t size, const cpu_set_t *set)) \
	FN(int, pthread_create,                                                                \
	   (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg))

NEXT_FUNCTIONS(FUNCTIONS)

bool shca_cpus_unpin(cpu_set_t *pinned)
{
	cpu_set_t set;

	return shca_program_cpus(&set) && !NEXT(sched_getaffinity)(0, sizeof(*pinned), pinned) &&
	       !NEXT(sched_setaffinity)(0, sizeof(set), &set);
}

void shca_cpus_pin(const cpu_set_t *pinned)
{
	NEXT(sched_setaffinity)(0, sizeof(*pinned), pinned);
}

/* Gives a forked child the program's CPUs: the child has no clock, and would stay on the CPU of its
 * parent. */
static void unpin(void)
{
	cpu_set_t pinned;

	if (shca_cpus_unpin(&pinned))
		shca_program_unpinned();
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, unpin);
}

static bool is_self(pid_t pid)
{
	return !pid || pid == gettid();
}

/* Returns true if the program asks, and not softhca inside of a call. */
static bool is_program(void)
{
	return shca_program_join();
}

static bool get_own(size_t size, cpu_set_t *set)
{
	cpu_set_t cpus;

	if (!is_program() || !shca_program_cpus(&cpus))
		return false;
	memset(set, 0, size);
	memcpy(set, &cpus, size < sizeof(cpus) ? size : sizeof(cpus));
	return true;
}

static bool set_own(size_t size, const cpu_set_t *set)
{
	cpu_set_t cpus;

	if (!is_program() || !shca_program_cpus(&cpus))
		return false;
	CPU_ZERO(&cpus);
	memcpy(&cpus, set, size < sizeof(cpus) ? size : sizeof(cpus));
	shca_program_set_cpus(&cpus);
	return true;
}

int shca_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	if (is_self(pid) && get_own(size, set))
		return 0;
	return NEXT(sched_getaffinity)(pid, size, set);
}

int shca_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	if (is_self(pid) && set_own(size, set))
		return 0;
	return NEXT(sched_setaffinity)(pid, size, set);
}

int shca_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	if (pthread_equal(thread, pthread_self()) && get_own(size, set))
		return 0;
	return NEXT(pthread_getaffinity_np)(thread, size, set);
}

int shca_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	if (pthread_equal(thread, pthread_self()) && set_own(size, set))
		return 0;
	return NEXT(pthread_setaffinity_np)(thread, size, set);
}

/* ---------------------------------------------------------------- new threads */

struct start {
	void *(*fn)(void *arg);
	void *arg;
	bool placed; /* the attributes say where the thread runs */
	cpu_set_t cpus;
	bool clocked;
};

/* Returns true if attributes have CPUs: without any, all bits of the set are set. */
static bool has_cpus(const pthread_attr_t *attr)
{
	cpu_set_t set;

	return attr && !pthread_attr_getaffinity_np(attr, sizeof(set), &set) &&
	       CPU_COUNT(&set) < CPU_SETSIZE;
}

static void *start(void *arg)
{
	struct start info = *(struct start *)arg;

	free(arg);
	shca_program_untrap();
	if (!info.placed)
		next_sched_setaffinity(0, sizeof(info.cpus), &info.cpus);
	if (info.clocked)
		shca_program_inherit();
	return info.fn(info.arg);
}

int shca_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			void *arg)
{
	struct start *info;
	int rc;

	shca_program_prepare_thread();
	if (!shca_program_join())
		return NEXT(pthread_create)(thread, attr, fn, arg);
	shca_program_disturb();
	info = malloc(sizeof(*info));
	if (!info)
		return EAGAIN;
	if (!shca_program_cpus(&info->cpus))
		NEXT(sched_getaffinity)(0, sizeof(info->cpus), &info->cpus);
	info->placed = has_cpus(attr);
	info->clocked = shca_program_clock_is_inherited();
	info->fn = fn;
	info->arg = arg;
	rc = NEXT(pthread_create)(thread, attr, start, info);
	if (rc)
		free(info);
	return rc;
}
