/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing.h - what the adapters of this process do in one way in real time, and in another way in
 * virtual time.
 */
#ifndef SHCA_TIMING_H
#define SHCA_TIMING_H

#include <sys/types.h>

#include "process.h"

struct shca_timing {
	/* Wakes the engine's thread, after its work was stored and schedule() was called. */
	void (*wake)(void);
	/* Makes the engine look at time `when` at the latest, in whichever thread. */
	void (*announce)(uint64_t when);
	/* Notes when the adapters have work next; 0: now, UINT64_MAX: never. */
	void (*schedule)(uint64_t when);
	/* Returns the date (ns since 1970) of a completion's time stamp. */
	uint64_t (*date_of)(uint64_t stamp);
	/* Reads a record of a channel as read() does. */
	ssize_t (*read_channel)(int fd, void *record, size_t len);
	/* Lets the calling thread, which is inside of a call, wait for that time (ns). */
	void (*elapse)(uint64_t ns);
	/* Notes that the owner of a queue may see a completion from a time on. NULL in real time,
	 * like the next one: each message would call them for nothing. */
	void (*completion)(unsigned owner, const struct shca_cqe *cqe, uint64_t visible_at);
	/* Notes that a message has written to a process's memory. */
	void (*memory_written)(unsigned proc);
	/* A posting thread executes messages of any size, because that takes it no time. */
	bool posting_is_free;
};
/* The functions of real time, until shca_timing_choose(). The table itself rather than a pointer to
 * one, because that saves each message a load. */
extern struct shca_timing shca_timing;

/* Chooses the functions of the time that the process has now. No thread is inside of a call. */
void shca_timing_choose(void);

#endif
