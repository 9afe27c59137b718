/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lost.c - a receive that a sender claimed, and didn't complete because it was stopped there,
 * is flushed when that sender dies, although its QP was flushed without it before.
 */
#include "fabric/proc.h"
#include "inside.h"
#include "procs.h"

enum { K_READY = 1, RECEIVES = 4, LEN = 64 };

static void sender(unsigned me, void *arg)
{
	(void)me;
	(void)arg;
	t_open();
	procs_put(K_READY, 1);
	procs_get(PROCS_PARENT, K_READY);
	t_fail("the parent should have killed this process");
}

/* Returns the entry of a child. */
static struct shca_proc *child_entry(unsigned who)
{
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		if (shca_proc_alive(&t_fab, i) &&
		    atomic_load(&t_fab.hdr->procs[i].pid) == procs_pid(who))
			return &t_fab.hdr->procs[i];
	t_fail("the child is no process of the fabric");
}

/* Makes a process one that was stopped when it had claimed the oldest receive of a queue. */
static void stop_in_message(struct shca_proc *proc, struct shca_rq *rq)
{
	struct shca_exec *exec = &proc->exec[SHCA_MAX_EXEC - 2]; /* no thread has it */

	atomic_store(&exec->tid, (uint32_t)atomic_load(&proc->pid));
	atomic_store(&exec->holds, SHCA_HOLDS_ANY);
	atomic_fetch_add(&exec->seq, 1);
	atomic_fetch_add(&rq->head, 1);
}

/* Puts a QP into ERR, as a peer does. */
static void fail_qp(struct shca_qp_entry *entry)
{
	atomic_store(&entry->state, IBV_QPS_ERR);
	atomic_fetch_or(&t_proc->attention, SHCA_ATTENTION_QP);
	shca_proc_wake(t_proc);
}

static void test_killed_after_flush(void **state)
{
	struct t_dev *dev;
	struct t_pair p;

	(void)state;
	procs_start(1, NULL, sender, NULL);
	procs_get(0, K_READY);
	dev = t_open();
	p = t_pair(dev, NULL, NULL, LEN);
	t_inside_open();
	for (unsigned i = 0; i < RECEIVES; i++) {
		struct ibv_sge in = t_sge(&p.bb, 0, LEN);

		t_recv(p.b, i, &in, 1);
	}
	stop_in_message(child_entry(0), &t_qp_entry(p.b)->rq);
	fail_qp(t_qp_entry(p.b));
	for (unsigned i = 1; i < RECEIVES; i++)
		t_next(p.b->rcq, i, IBV_WC_WR_FLUSH_ERR);
	t_none(p.b->rcq, T_QUIET_MS);
	procs_kill(0);
	t_next(p.b->rcq, 0, IBV_WC_WR_FLUSH_ERR);
	t_none(p.b->rcq, T_QUIET_MS);
	t_inside_close();
	t_pair_free(&p);
	t_close(dev);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_after_flush)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
