/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - the threads and processes below the launcher, as /proc lists them.
 */
#ifndef SHCA_JOB_H
#define SHCA_JOB_H

#include "fabric/fabric.h"

#define SHCA_JOB_THREADS 8192
#define SHCA_JOB_PROCS   1024
/* Most new ids since the last look that are looked at one by one. After more, all are listed anew.
 */
#define SHCA_JOB_IDS 1024

/* The threads of a job, each with its file in /proc, and its processes. */
struct shca_job {
	struct shca_fabric *fabric;
	unsigned long last_id; /* last id that the kernel had assigned at the last look */
	unsigned nthreads, nprocs;
	bool incomplete; /* there was no room, or no descriptor, for a thread or process */
	uint32_t joins;  /* number of joins for which the threads' actors are known */
	struct {
		pid_t tid, pid;
		int stat;
		uint32_t actor; /* SHCA_NO_ACTOR: none is known */
		bool clocked;   /* the thread's process has threads with clocks */
		bool engine;    /* softhca's own: sleeps until the adapters have the turn */
	} threads[SHCA_JOB_THREADS];
	struct {
		pid_t pid;
		bool clocked; /* has threads with clocks */
	} procs[SHCA_JOB_PROCS];
	/* Ids that the kernel had assigned, but that were not in /proc yet. */
	unsigned npending;
	struct shca_job_id {
		pid_t id;
		uint64_t since; /* real time at which the id was new */
	} pending[SHCA_JOB_IDS];
};

/* Adds the threads and processes that are new since the last look, and finds the actors of all. The
 * first call lists all. */
void shca_job_refresh(struct shca_job *job);
/* Removes a thread, or a process, that has ended: the last one of the list takes its place. */
void shca_job_forget_thread(struct shca_job *job, unsigned i);
void shca_job_forget_process(struct shca_job *job, unsigned i);

#endif
