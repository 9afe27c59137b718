/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - what the threads and adapters of a process do, as records in a file of its own, for the
 * option "trace" (recording.h, cmd/traces.c). A file is a shared mapping, so the records of a
 * killed process are there, too.
 */
#ifndef SHCA_TRACE_H
#define SHCA_TRACE_H

#include "recording.h"

#define SHCA_TRACE_MAGIC   0x3165636172746873ULL /* "shtrace1" */
#define SHCA_TRACE_NO_PROC 0xffffu

enum shca_trace_kind {
	SHCA_TRACE_NONE, /* no record: the end of the file */
	/* A stretch of a thread's time. */
	SHCA_TRACE_PROGRAM, /* runs its program; virtual time only */
	SHCA_TRACE_POLLS,   /* polls completion queues in vain */
	SHCA_TRACE_WAITS,   /* sleeps, or waits for an event or another thread */
	SHCA_TRACE_OUT,     /* waits for the real world; virtual time only */
	/* A moment of a thread. */
	SHCA_TRACE_SEND,       /* posted a send */
	SHCA_TRACE_RECV,       /* posted a receive */
	SHCA_TRACE_COMPLETION, /* polled a completion */
	/* A stretch of an adapter's time. */
	SHCA_TRACE_MESSAGE, /* from the first byte's departure to the last one's arrival */
};

/* The first bytes of a file. */
struct shca_trace_head {
	uint64_t magic;
	int32_t pid;
	uint32_t slot, node;
	int32_t rank; /* -1: it has none */
	char comm[16];
	uint64_t unused[3];
};

struct shca_trace_record {
	uint64_t from, to; /* ns, as shca_now(); a moment has both alike */
	uint64_t posted;   /* MESSAGE: time at which it was posted */
	uint64_t held;     /* MESSAGE: time since which it waited for a receive; 0 = it didn't */
	int32_t tid;       /* the thread that wrote the record */
	uint32_t qpn;
	uint32_t srqn;
	uint32_t bytes;
	uint16_t peer;  /* MESSAGE: process slot, or SHCA_TRACE_NO_PROC */
	uint8_t kind;   /* shca_trace_kind */
	uint8_t opcode; /* ibv_wr_opcode; COMPLETION: ibv_wc_opcode */
	uint8_t status; /* ibv_wc_status */
	uint8_t unused[11];
};

/* Returns true if this process writes records. */
static inline bool shca_tracing(void)
{
	return shca_records(SHCA_RECORD_TRACE);
}

/* Starts the records of the process in that slot, if the fabric's options ask for them. Failures
 * are told on the standard error output, once; the process goes on without. */
void shca_trace_start(const struct shca_fabric *fabric, unsigned slot);
void shca_trace_stop(void);
/* Returns the descriptor of the file of records, or -1 if there is none. */
int shca_trace_fd(void);
/* Forgets the parent's records in a forked child. */
void shca_trace_reset(void);

/* Adds a record; fills in the thread. Any thread. */
void shca_trace_add(const struct shca_trace_record *record);
/*
 * Adds a stretch of the calling thread's time, or makes its last one longer if that is of the same
 * kind and ended just before. A short stretch of PROGRAM between others is left out: it is what a
 * library does between two polls.
 */
void shca_trace_stretch(enum shca_trace_kind kind, uint64_t from, uint64_t to);

#endif
