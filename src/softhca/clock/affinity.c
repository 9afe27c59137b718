/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * affinity.c - on which CPU a thread in virtual time runs. Because one thread runs at a time, all
 * share a CPU, and the kernel doesn't have to wake another one at each turn. The program sees the
 * CPUs that it had before.
 */
#define _GNU_SOURCE 1
#include "clock.h"
#include "program.h"

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	bool pinned;
	cpu_set_t program_cpus;
} self;

void shca_affinity_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || self.pinned ||
	    sched_getaffinity(0, sizeof(self.program_cpus), &self.program_cpus))
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	self.pinned = !sched_setaffinity(0, sizeof(set), &set);
}

bool shca_program_cpus(cpu_set_t *set)
{
	if (self.pinned)
		*set = self.program_cpus;
	return self.pinned;
}

void shca_program_unpinned(void)
{
	self.pinned = false;
}

void shca_program_set_cpus(const cpu_set_t *set)
{
	self.program_cpus = *set;
}
