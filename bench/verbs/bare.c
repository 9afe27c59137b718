/* SPDX-License-Identifier: BSD-3-Clause */
/* bare.c - the figures of the bare machine, without verbs, for comparison. */
#define _GNU_SOURCE
#include "runs.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/* Each process writes its own cache line and spins on the other's. */
void run_bare_pingpong(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	_Atomic uint64_t *mine = &bench->pair.sh->line[bench->pair.rank].value;
	_Atomic uint64_t *theirs = &bench->pair.sh->line[!bench->pair.rank].value;
	uint64_t base = atomic_load(mine), start = now_ns();

	(void)row;
	for (uint64_t i = base + 1; i <= base + count; i++) {
		struct idle idle = {0};

		if (!bench->pair.rank)
			atomic_store_explicit(mine, i, memory_order_release);
		while (atomic_load_explicit(theirs, memory_order_acquire) < i)
			pair_idle(&idle);
		if (bench->pair.rank)
			atomic_store_explicit(mine, i, memory_order_release);
	}
	out[0] = (double)(now_ns() - start) / 1e3 / count / 2;
}

void run_vm_writev(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	const struct process_info *peer = &bench->pair.sh->info[1];
	struct iovec from = {.iov_base = bench->end.send_buf, .iov_len = row->len};
	struct iovec to = {.iov_base = (void *)(uintptr_t)peer->recv_buf, .iov_len = row->len};
	uint64_t start = now_ns();

	if (bench->pair.rank)
		return;
	for (unsigned i = 0; i < count; i++)
		if (process_vm_writev(peer->pid, &from, 1, &to, 1, 0) != (ssize_t)row->len)
			die("process_vm_writev: %s", strerror(errno));
	out[0] = (double)row->len * count / (double)(now_ns() - start);
}

/* One message per cache line of a ring; the reader tells every LANE_BATCH messages how many it has
 * taken. */
void run_bare_ring(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	struct pair_shared *sh = bench->pair.sh;
	uint64_t base = atomic_load(&sh->taken.value), known = base, start = now_ns();
	struct idle idle;

	(void)row;
	for (uint64_t i = base + 1; i <= base + count; i++) {
		_Atomic uint64_t *slot = &sh->slot[i % PAIR_RING_SLOTS].value;

		idle = (struct idle){0};
		if (bench->pair.rank) {
			while (atomic_load_explicit(slot, memory_order_acquire) != i)
				pair_idle(&idle);
			if (i % LANE_BATCH == 0 || i == base + count)
				atomic_store_explicit(&sh->taken.value, i, memory_order_release);
		} else {
			while (i - known > PAIR_RING_SLOTS) {
				known = atomic_load_explicit(&sh->taken.value,
							     memory_order_acquire);
				if (i - known > PAIR_RING_SLOTS)
					pair_idle(&idle);
			}
			atomic_store_explicit(slot, i, memory_order_release);
		}
	}
	idle = (struct idle){0};
	while (atomic_load_explicit(&sh->taken.value, memory_order_acquire) != base + count)
		pair_idle(&idle);
	out[0] = count * 1e3 / (double)(now_ns() - start);
}
