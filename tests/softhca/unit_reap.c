/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_reap.c - leftovers of processes that died, and of their reapers.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/arena.h"
#include "fabric/event.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/xrc_life.h"
#include "fabric/reap.h"

struct owned {
	uint32_t numbers[SHCA_KINDS], event;
	char fifo[160];
};

static void own_everything(unsigned slot, void *arg)
{
	struct owned *owned = arg;
	uint64_t off;
	unsigned k;
	int fd;

	for (k = 0; k < SHCA_KINDS; k++) {
		void *e;

		if (k == SHCA_XRCD) {
			e = shca_table_entry(
				&u_fab, &u_hca->tables[k],
				(uint32_t)shca_xrcd_open(&u_fab, u_hca, slot, 0, 0, O_CREAT));
		} else {
			e = u_make(u_hca, k, slot, NULL);
			shca_table_publish(e);
		}
		owned->numbers[k] = shca_table_number(e);
		u_make(u_hca, k, slot, NULL); /* died while making it */
		e = u_make(u_hca, k, slot, NULL);
		shca_table_publish(e);
		shca_table_retire(e); /* died while destroying it */
	}
	atomic_store(&u_fab.hdr->mcast[3].hca, 0);
	atomic_store(&u_fab.hdr->mcast[3].qpn, owned->numbers[SHCA_QP]);
	atomic_store(&u_fab.hdr->procs[slot].pds[0], 4);
	atomic_fetch_add(&u_hca->pds, 4);
	atomic_store(&u_hca->atomic_locks[5], slot + 1);
	owned->event = (uint32_t)shca_event_create(&u_fab, slot, &fd);
	snprintf(owned->fifo, sizeof(owned->fifo), "%s/ev.%u.%u", u_dir, slot, owned->event);
	off = shca_arena_alloc(&u_fab, slot, 1 << 20);
	memset(shca_arena(&u_fab, slot, off, 1 << 20), 1, 1 << 20);
	shca_lock(&u_hca->ctl_lock); /* the child holds every lock */
	shca_lock(&u_fab.hdr->ctl_lock);
}

static void death_leaves_nothing(void **state)
{
	struct owned *owned = mmap(NULL, sizeof(*owned), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct stat before, after;
	struct u_child c;
	unsigned k;

	(void)state;
	c = u_fork(own_everything, owned);
	for (k = 0; k < SHCA_KINDS; k++) {
		t_holds(u_findable(u_hca, k, owned->numbers[k]));
		t_eq(atomic_load(&u_hca->tables[k].count), 3);
	}
	t_eq(access(owned->fifo, F_OK), 0);
	t_holds(shca_proc_running(&u_fab, c.slot));
	kill(c.pid, SIGKILL);
	t_eq(waitid(P_PID, (id_t)c.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	t_holds(!shca_proc_running(&u_fab, c.slot)); /* a zombie */
	t_holds(shca_proc_alive(&u_fab, c.slot));
	fstat(u_fab.fd, &before);
	shca_reap_all(&u_fab);
	fstat(u_fab.fd, &after);
	u_kill(c);
	t_holds(!shca_proc_alive(&u_fab, c.slot));
	for (k = 0; k < SHCA_KINDS; k++) {
		t_holds(!u_findable(u_hca, k, owned->numbers[k]));
		t_eq(atomic_load(&u_hca->tables[k].count), 0);
	}
	t_eq(atomic_load(&u_fab.hdr->mcast[3].qpn), 0);
	t_eq(atomic_load(&u_hca->pds), 0);
	t_eq(atomic_load(&u_hca->atomic_locks[5]), 0);
	t_eq(access(owned->fifo, F_OK), -1);
	t_holds(before.st_blocks - after.st_blocks >= (1 << 20) / 512);
	t_holds(shca_proc_alive(&u_fab, (unsigned)u_slot));
	shca_reap(&u_fab, (unsigned)u_slot); /* does nothing to a running process */
	t_holds(shca_proc_alive(&u_fab, (unsigned)u_slot));
	munmap(owned, sizeof(*owned));
}

static void begin_reaping(unsigned slot, void *arg)
{
	struct shca_proc *victim = &u_fab.hdr->procs[*(unsigned *)arg];

	(void)slot;
	shca_lock(&u_fab.hdr->ctl_lock);
	atomic_store(&victim->state, (atomic_load(&victim->state) & ~0xffULL) | SHCA_PROC_REAPING);
	shca_lock(&u_hca->ctl_lock);
	shca_xrc_leave(&u_fab, u_hca, *(unsigned *)arg);
}

static void a_reaper_that_dies_is_succeeded(void **state)
{
	struct owned *owned = mmap(NULL, sizeof(*owned), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct u_child victim = u_fork(own_everything, owned), reaper;
	unsigned k;

	(void)state;
	u_kill(victim);
	reaper = u_fork(begin_reaping, &victim.slot);
	u_kill(reaper);
	shca_reap_all(&u_fab);
	for (k = 0; k < SHCA_KINDS; k++)
		t_eq(atomic_load(&u_hca->tables[k].count), 0);
	t_holds(!shca_proc_alive(&u_fab, victim.slot));
	t_holds(!shca_proc_alive(&u_fab, reaper.slot));
	munmap(owned, sizeof(*owned));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FABRIC(death_leaves_nothing),
		IN_FABRIC(a_reaper_that_dies_is_succeeded),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
