/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.c - see segment.h.
 */
#define _GNU_SOURCE 1
#include "segment.h"

#include <sched.h>
#include <sys/shm.h>
#include <sys/utsname.h>

int seg_make(void)
{
	int id = shmget(IPC_PRIVATE, SEG_LEN, IPC_CREAT | 0600);

	t_true(id >= 0, "shmget: %s", strerror(errno));
	return id;
}

char *seg_attach(int id)
{
	void *p = shmat(id, NULL, 0);

	t_true(p != (void *)-1, "shmat: %s", strerror(errno));
	return p;
}

static unsigned attached(int id)
{
	struct shmid_ds ds;

	t_true(!shmctl(id, IPC_STAT, &ds), "shmctl: %s", strerror(errno));
	return (unsigned)ds.shm_nattch;
}

void seg_await_attached(int id, unsigned n)
{
	uint64_t end = t_now() + T_DEADLINE_MS * 1000000ull;

	while (attached(id) != n) {
		t_true(t_now() < end, "%u have attached it, not %u", attached(id), n);
		sched_yield();
	}
}

/* ---- the two sides ---- */

static void connect_side(struct seg_side *side, unsigned me)
{
	struct t_params p = t_params_quick(side->dev, 3);

	procs_connect(side->qp, !me, SEG_K_QP, &p);
	procs_barrier();
}

struct seg_side seg_owner_with(int id, char *addr, int access)
{
	struct seg_side s = {.dev = t_open(), .id = id};

	s.own = (struct t_buf){.addr = addr, .len = SEG_LEN};
	s.own.mr = ibv_reg_mr(s.dev->pd, addr, SEG_LEN, (unsigned)access);
	t_true(s.own.mr, "ibv_reg_mr: %s", strerror(errno));
	s.qp = t_qp(s.dev, NULL);
	procs_put_buf(SEG_K_BUF, &s.own);
	procs_put(SEG_K_ID, (uint64_t)id);
	connect_side(&s, 1);
	return s;
}

struct seg_side seg_owner(void)
{
	int id = seg_make();
	char *addr = seg_attach(id);

	shmctl(id, IPC_RMID, NULL);
	return seg_owner_with(id, addr, T_FULL_ACCESS);
}

struct seg_side seg_requester(void)
{
	struct seg_side s = {.dev = t_open()};

	s.qp = t_qp(s.dev, NULL);
	s.own = t_buf(s.dev, SEG_LEN);
	s.there = procs_get_buf(1, SEG_K_BUF);
	s.id = (int)procs_get(1, SEG_K_ID);
	connect_side(&s, 0);
	return s;
}

void seg_requester_close(struct seg_side *side)
{
	t_qp_free(side->qp);
	t_buf_free(&side->own);
	t_close(side->dev);
}

void seg_owner_close(struct seg_side *side)
{
	t_qp_free(side->qp);
	if (side->own.mr)
		t_ok(ibv_dereg_mr(side->own.mr));
	t_close(side->dev);
}

enum ibv_wc_status seg_request(struct seg_side *side, enum ibv_wr_opcode op, size_t off, size_t len)
{
	struct ibv_sge sge = t_sge(&side->own, 0, len);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, side->there.addr + off, side->there.rkey);
	struct ibv_wc wc;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 77;
	}
	t_post(side->qp, &wr);
	t_poll(side->qp->scq, &wc, 1);
	return wc.status;
}

enum ibv_wc_status seg_write_word(struct seg_side *side, size_t off, uint64_t value)
{
	memcpy(side->own.addr, &value, sizeof(value));
	return seg_request(side, IBV_WR_RDMA_WRITE, off, sizeof(value));
}

uint64_t seg_word_at(const char *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

void seg_run(procs_fn fn)
{
	unsigned nodes[] = {0, 1};

	procs_run(2, nodes, fn, NULL);
}

/* Returns true if the kernel has PROCMAP_QUERY, by which an owner finds the segment that it
 * registers. */
static bool kernel_says_what_is_mapped(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 11));
}

bool seg_copied(int argc, char **argv)
{
	return (argc > 1 && !strcmp(argv[1], "copied")) || !kernel_says_what_is_mapped();
}
