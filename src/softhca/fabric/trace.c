/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - writing the records of this process.
 */
#define _GNU_SOURCE 1
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cancel.h"
#include "proc.h"
#include "say.h"

#define PER_CHUNK 16384u /* records in the part of the file that is mapped */
#define GAP_NS    1000u  /* longest gap within one stretch; a shorter PROGRAM is left out */

static_assert(sizeof(struct shca_trace_record) == sizeof(struct shca_trace_head),
	      "the head takes the place of a record, so chunks begin at whole pages");
static_assert(sizeof(struct shca_trace_record) == 64, "files are read by cmd/traces.c");

static struct {
	pthread_mutex_t lock;
	int fd;
	struct shca_trace_record *chunk;
	uint64_t chunks; /* of the file so far */
	uint64_t serial; /* counts mapped chunks of all files */
	uint32_t used;   /* records in the last chunk */
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* The last stretch of the calling thread. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	int32_t tid;
	struct shca_trace_record *stretch; /* valid while file.serial is `serial` */
	uint64_t serial;
} self;

/* Maps the next part of the file. Needs the lock. */
static int next_chunk(void)
{
	size_t len = PER_CHUNK * sizeof(*file.chunk);
	off_t at = (off_t)(file.chunks * len);
	void *chunk;
	int rc;

	if (file.chunk)
		munmap(file.chunk, len);
	file.chunk = NULL;
	rc = posix_fallocate(file.fd, at, (off_t)len);
	if (rc)
		return -rc;
	chunk = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, at);
	if (chunk == MAP_FAILED)
		return -errno;
	file.chunk = chunk;
	file.chunks++;
	file.serial++;
	file.used = 0;
	return 0;
}

/* Ends the records of this process. Needs the lock. */
static void end(void)
{
	shca_recording_set(SHCA_RECORD_TRACE, false);
	if (file.chunk)
		munmap(file.chunk, PER_CHUNK * sizeof(*file.chunk));
	if (file.fd >= 0)
		close(file.fd);
	file.chunk = NULL;
	file.fd = -1;
	file.chunks = 0;
}

/* Returns the place of the next record, or NULL after the last one. Needs the lock. */
static struct shca_trace_record *place(void)
{
	int rc = 0;

	if (file.fd < 0)
		return NULL;
	if (!file.chunk || file.used == PER_CHUNK)
		rc = next_chunk();
	if (!rc)
		return &file.chunk[file.used++];
	shca_say("The trace of process %d ends early, because its file can't grow (%s): "
		 "free some space, or trace a shorter run.",
		 (int)getpid(), strerror(-rc));
	end();
	return NULL;
}

static void write_head(const struct shca_fabric *fabric, unsigned slot)
{
	const struct shca_proc *proc = &fabric->hdr->procs[slot];
	struct shca_trace_head head = {
		.magic = SHCA_TRACE_MAGIC,
		.pid = atomic_load(&proc->pid),
		.slot = slot,
		.node = proc->node,
		.rank = shca_proc_rank(),
	};
	struct shca_trace_record *record = place();

	memcpy(head.comm, proc->comm, sizeof(head.comm));
	if (record)
		memcpy(record, &head, sizeof(head));
}

void shca_trace_start(const struct shca_fabric *fabric, unsigned slot)
{
	int cancel;

	if (!fabric->hdr->config.text[SHCA_O_TRACE][0])
		return;
	cancel = shca_cancel_hold();
	pthread_mutex_lock(&file.lock);
	file.fd = shca_recording_open(fabric, slot, SHCA_TRACE_LINK);
	if (file.fd >= 0)
		write_head(fabric, slot);
	shca_recording_set(SHCA_RECORD_TRACE, file.fd >= 0);
	pthread_mutex_unlock(&file.lock);
	shca_cancel_restore(cancel);
}

void shca_trace_stop(void)
{
	pthread_mutex_lock(&file.lock);
	end();
	pthread_mutex_unlock(&file.lock);
}

int shca_trace_fd(void)
{
	return file.fd;
}

void shca_trace_reset(void)
{
	pthread_mutex_init(&file.lock, NULL);
	end();
	self.tid = 0;
	self.stretch = NULL;
}

/* Writes a record. Needs the lock. */
static struct shca_trace_record *add(const struct shca_trace_record *record)
{
	struct shca_trace_record *at = place();

	if (!at)
		return NULL;
	if (!self.tid)
		self.tid = (int32_t)syscall(SYS_gettid);
	*at = *record;
	at->tid = self.tid;
	return at;
}

void shca_trace_add(const struct shca_trace_record *record)
{
	int cancel = shca_cancel_hold();

	pthread_mutex_lock(&file.lock);
	add(record);
	pthread_mutex_unlock(&file.lock);
	shca_cancel_restore(cancel);
}

void shca_trace_stretch(enum shca_trace_kind kind, uint64_t from, uint64_t to)
{
	struct shca_trace_record *last;
	int cancel = shca_cancel_hold();

	pthread_mutex_lock(&file.lock);
	last = file.chunk && self.serial == file.serial ? self.stretch : NULL;
	if (last && last->kind == kind && from <= last->to + GAP_NS) {
		if (to > last->to)
			last->to = to;
	} else if (kind != SHCA_TRACE_PROGRAM || to - from >= GAP_NS) {
		self.stretch =
			add(&(struct shca_trace_record){.kind = kind, .from = from, .to = to});
		self.serial = file.serial;
	}
	pthread_mutex_unlock(&file.lock);
	shca_cancel_restore(cancel);
}
