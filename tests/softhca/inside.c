/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inside.c - finding things in the shared memory of a fabric.
 */
#include "inside.h"

#include <sched.h>
#include <unistd.h>

#include "fabric/table.h"

struct shca_fabric t_fab;
struct shca_proc *t_proc;
unsigned t_slot;

void t_inside_open(void)
{
	const char *dir = getenv(SHCA_ENV_FABRIC);
	char err[512] = "";

	t_true(dir && !shca_fabric_attach(dir, &t_fab, err, sizeof(err)), "no fabric: %s", err);
	for (t_slot = 0; t_slot < SHCA_MAX_PROCS; t_slot++) {
		t_proc = &t_fab.hdr->procs[t_slot];
		if (shca_proc_state_alive(atomic_load(&t_proc->state)) &&
		    atomic_load(&t_proc->pid) == getpid())
			return;
	}
	t_fail("this process has opened no device");
}

void t_inside_close(void)
{
	shca_fabric_detach(&t_fab);
}

static struct shca_table *table(enum shca_kind kind)
{
	return &t_fab.hdr->hcas[0].tables[kind];
}

struct shca_cq_entry *t_cq_entry(const struct ibv_cq *cq)
{
	return shca_table_entry(&t_fab, table(SHCA_CQ), cq->handle);
}

struct shca_qp_entry *t_qp_entry(const struct t_qp *qp)
{
	return shca_table_entry(&t_fab, table(SHCA_QP), qp->qp->handle);
}

struct shca_cq_ring *t_cq_ring(const struct ibv_cq *cq)
{
	const struct shca_cq_entry *entry = t_cq_entry(cq);
	uint64_t desc = atomic_load(&entry->ring);
	char *mem = shca_arena(&t_fab, t_slot, desc >> 8,
			       sizeof(struct shca_cq_ring) + (entry->stride << (desc & 0xff)));

	t_true(mem, "the ring can't be mapped");
	return (struct shca_cq_ring *)(void *)mem;
}

struct shca_cqe *t_cq_slot(const struct ibv_cq *cq, uint64_t pos)
{
	const struct shca_cq_entry *entry = t_cq_entry(cq);
	uint64_t slots = 1ULL << (atomic_load(&entry->ring) & 0xff);
	char *first = (char *)(t_cq_ring(cq) + 1);

	return (struct shca_cqe *)(void *)(first + (pos & (slots - 1)) * entry->stride);
}

struct shca_cqe *t_cq_newest(const struct ibv_cq *cq)
{
	const struct shca_cq_ring *ring = t_cq_ring(cq);
	const struct shca_cq_entry *entry = t_cq_entry(cq);
	uint64_t began = t_now();

	while (atomic_load(&ring->tail) - atomic_load(&ring->bias) == atomic_load(&entry->polled)) {
		t_true(t_ms_since(began) < T_DEADLINE_MS, "no completion came");
		sched_yield();
	}
	return t_cq_slot(cq, atomic_load(&ring->tail) - 1);
}

struct shca_rwqe *t_rwqe(const struct t_qp *qp, uint32_t slot)
{
	const struct shca_rq *rq = &t_qp_entry(qp)->rq;
	char *wqes = shca_arena(&t_fab, t_slot, rq->wqes, (uint64_t)rq->size * rq->stride);

	t_true(wqes, "the queue can't be mapped");
	return (struct shca_rwqe *)(void *)(wqes + (uint64_t)slot * rq->stride);
}
