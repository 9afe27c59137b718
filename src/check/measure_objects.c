/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, changing and destroying objects. */
#include "measure.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

double measure_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

bool measure_srq(struct end *end, size_t bytes, double *us)
{
	double begin;
	int error;

	(void)bytes;
	begin = measure_now();
	error = ibv_destroy_srq(end->srq);
	us[1] = measure_now() - begin;
	end->srq = NULL;
	if (error)
		return end_fail(end, error, "ibv_destroy_srq()");
	begin = measure_now();
	if (!end_make_srq(end))
		return false;
	us[0] = measure_now() - begin;
	return true;
}

/* Destroys a queue pair, and takes the time. */
static bool destroy_qp(struct end *end, struct ibv_qp *qp, double *us)
{
	double begin = measure_now();
	int error = ibv_destroy_qp(qp);

	*us = measure_now() - begin;
	return !error || end_fail(end, error, "ibv_destroy_qp()");
}

bool measure_qp(struct end *end, size_t bytes, double *us)
{
	double begin = measure_now();
	struct ibv_qp *qp = end_make_initiator(end);

	(void)bytes;
	us[0] = measure_now() - begin;
	if (!qp)
		return end_fail(end, errno, "ibv_create_qp_ex()");
	return destroy_qp(end, qp, &us[1]);
}

bool measure_open(struct end *end, size_t bytes, double *us)
{
	struct ibv_qp *made = end->target, *opened;
	double begin = measure_now();

	(void)bytes;
	if (!end_open_target(end, made->qp_num)) {
		end->target = made;
		return false;
	}
	us[0] = measure_now() - begin;
	opened = end->target;
	end->target = made;
	return destroy_qp(end, opened, &us[1]);
}

bool measure_modify(struct end *end, size_t bytes, double *us)
{
	struct ibv_qp *qp = end_make_initiator(end);
	double begin;
	int error;

	(void)bytes;
	if (!qp)
		return end_fail(end, errno, "ibv_create_qp_ex()");
	begin = measure_now();
	error = end_to_init(end, qp);
	us[0] = measure_now() - begin;
	begin = measure_now();
	if (!error)
		error = end_to_rtr(end, qp, end->target->qp_num);
	us[1] = measure_now() - begin;
	begin = measure_now();
	if (!error)
		error = end_to_rts(end, qp);
	us[2] = measure_now() - begin;
	ibv_destroy_qp(qp);
	return !error || end_fail(end, error, "ibv_modify_qp()");
}

/* The memory is touched before, as that of a program that sends it is. */
bool measure_registration(struct end *end, size_t bytes, double *us)
{
	int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, error;
	double begin;
	struct ibv_mr *mr;
	void *memory;

	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return end_fail(end, errno, "mmap()");
	begin = measure_now();
	mr = ibv_reg_mr(end->pd, memory, bytes, rights);
	error = errno;
	us[0] = measure_now() - begin;
	if (!mr) {
		munmap(memory, bytes);
		return end_fail(end, error, "ibv_reg_mr()");
	}
	begin = measure_now();
	error = ibv_dereg_mr(mr);
	us[1] = measure_now() - begin;
	munmap(memory, bytes);
	return !error || end_fail(end, error, "ibv_dereg_mr()");
}
