/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - the events of virtual time: each enters the hash, and with --clock-log becomes a line
 * of a file. Runs with one hash have one log; where two logs part is what differed first.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "turn_self.h"

/* Longest line, and longest name of a process. */
#define LINE_SIZE 96
#define NAME_SIZE 32

static int file = -1; /* the file; -1: there is none */

void shca_log_open(const struct shca_config *config)
{
	const char *path = config->text[SHCA_O_CLOCK_LOG];

	if (*path && file < 0)
		file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static void hash(uint64_t event)
{
	uint64_t value = atomic_load_explicit(&shca_clk->hash, memory_order_relaxed);

	value = (value ^ event) * 0x9e3779b97f4a7c15ULL;
	atomic_store_explicit(&shca_clk->hash, value ^ value >> 29, memory_order_relaxed);
}

/* Appends a line. Whoever has the turn writes, so the lines of all processes are in order. */
static void write_line(const char *line, int len)
{
	/* Not by write(), before which libsofthca-clock.so stands. */
	if (len > 0 && len < LINE_SIZE)
		syscall(SYS_write, file, line, (size_t)len);
}

/* Stores the name of a process: its rank, with its job if that was spawned, or its node and slot.
 */
static const char *name_of(uint64_t order, char name[NAME_SIZE])
{
	uint32_t process = SHCA_ORDER_PROCESS(order), job = process >> 20;

	if (process & SHCA_ORDER_PLACE(0, 0))
		snprintf(name, NAME_SIZE, "%u:%u", (process & INT32_MAX) >> 8, process & 0xff);
	else if (job)
		snprintf(name, NAME_SIZE, "%u@%u", process & 0xfffff, job + 1);
	else
		snprintf(name, NAME_SIZE, "%u", process);
	return name;
}

void shca_log_call(enum shca_call call)
{
	uint64_t time = shca_turn_self.clock - shca_clk->zero;
	uint64_t order = shca_clk->actors[shca_turn_self.actor - 1].order;
	char line[LINE_SIZE], name[NAME_SIZE];

	atomic_fetch_add_explicit(&shca_clk->syncs, 1, memory_order_relaxed);
	hash(time << 8 ^ order);
	if (__builtin_expect(file >= 0, 0))
		write_line(line,
			   snprintf(line, sizeof(line), "%llu %s.%u %s\n", (unsigned long long)time,
				    name_of(order, name), (uint32_t)order, shca_call_names[call]));
}

void shca_log_completion(unsigned slot, uint64_t at, uint32_t opcode, uint32_t status,
			 uint32_t bytes)
{
	uint64_t time = at - shca_clk->zero;
	char line[LINE_SIZE], name[NAME_SIZE];

	hash(time << 8 ^ bytes ^ (uint64_t)(status << 4 | (opcode & 15)) << 48);
	if (__builtin_expect(file >= 0, 0))
		write_line(line, snprintf(line, sizeof(line),
					  "%llu %s completion: opcode %u, status %u, %u bytes\n",
					  (unsigned long long)time,
					  name_of(shca_clk->actors[slot].order, name), opcode,
					  status, bytes));
}
