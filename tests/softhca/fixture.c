/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.c - see fixture.h.
 */
#define _GNU_SOURCE 1
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/proc.h"
#include "fabric/table.h"

struct shca_fabric u_fab;
char u_dir[128], u_err[256];
struct shca_hca *u_hca;
int u_slot = -1;

struct shca_config u_config(enum shca_opt o, int64_t value)
{
	static struct shca_config c;

	t_eq(shca_config_defaults(&c), 0);
	t_eq(shca_config_finish(&c, u_err, sizeof(u_err)), 0);
	c.value[o] = value;
	return c;
}

void u_start_with(enum shca_opt o, int64_t value)
{
	struct shca_config c = u_config(o, value);
	char root[64];

	t_eq(shca_fabric_root(root, sizeof(root)), 0);
	/* Not in the folder of fabrics, but beside it: nobody holds this fabric's lock, so "softhca
	 * list" would remove it. */
	snprintf(u_dir, sizeof(u_dir), "%s-unit-%d", root, (int)getpid());
	t_eq(shca_fabric_create(u_dir, &c, "unit test", u_err, sizeof(u_err)), 0);
	t_eq(shca_fabric_attach(u_dir, &u_fab, u_err, sizeof(u_err)), 0);
	u_hca = &u_fab.hdr->hcas[0];
	u_slot = shca_proc_attach(&u_fab);
	t_holds(u_slot >= 0);
}

int u_start(void **state)
{
	(void)state;
	u_start_with(SHCA_O_NODES, 2);
	return 0;
}

int u_stop(void **state)
{
	(void)state;
	if (u_fab.hdr) {
		shca_proc_detach(&u_fab, (unsigned)u_slot);
		shca_fabric_detach(&u_fab);
	}
	return shca_fabric_remove(u_dir);
}

struct u_child u_fork(void (*fn)(unsigned slot, void *arg), void *arg)
{
	struct u_child c;
	int pipefd[2], slot;

	t_eq(pipe(pipefd), 0);
	c.pid = fork();
	t_holds(c.pid >= 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no child */
		slot = shca_proc_attach(&u_fab);
		if (slot < 0)
			_exit(1);
		fn((unsigned)slot, arg);
		if (write(pipefd[1], &slot, sizeof(slot)) != sizeof(slot))
			_exit(1);
		for (;;)
			pause();
	}
	close(pipefd[1]);
	t_eq(read(pipefd[0], &slot, sizeof(slot)), sizeof(slot));
	close(pipefd[0]);
	c.slot = (unsigned)slot;
	return c;
}

void u_kill(struct u_child c)
{
	kill(c.pid, SIGKILL);
	t_eq(waitpid(c.pid, NULL, 0), c.pid);
}

void *u_make(struct shca_hca *hca, enum shca_kind kind, unsigned slot, uint32_t *idx)
{
	int64_t i = shca_table_alloc(&u_fab, hca, kind, slot);

	if (i < 0)
		return NULL;
	if (idx)
		*idx = (uint32_t)i;
	return shca_table_entry(&u_fab, &hca->tables[kind], (uint32_t)i);
}

bool u_findable(struct shca_hca *hca, enum shca_kind kind, uint32_t number)
{
	uint32_t idx;

	return shca_table_find(&u_fab, hca, kind, number, &idx);
}
