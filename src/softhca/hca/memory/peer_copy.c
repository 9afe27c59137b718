/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_copy.c - process_vm_readv and process_vm_writev, or a copy through shared memory.
 */
#include "peer_copy.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "fabric/arena.h"
#include "fabric/epoch.h"
#include "fabric/proc.h"
#include "fabric/say.h"
#include "hca/process.h"

/* Bytes of a bounce buffer: more go through the buffer in parts. A choice: each part is a request
 * and an answer, and each thread that copies has a buffer. */
#define BOUNCE_BYTES (256u << 10)

/* Time (ns) that a target may take to begin a copy that it is asked for. A choice: its engine may
 * have to wait for a CPU; but this thread can't go on with other queues if the target is stopped.
 */
#define ANSWER_NS 200000000u

/* Set once the kernel refused process_vm_writev: every later copy goes through shared memory. */
static _Atomic bool refused;

/* Bounce buffer of each executor slot of this process, made on first use. */
static _Atomic uint64_t bounce[SHCA_MAX_EXEC];

void shca_peer_copy_reset(void)
{
	for (unsigned i = 0; i < SHCA_MAX_EXEC; i++)
		atomic_store(&bounce[i], 0);
}

/* Returns true if that byte of this process can be read. */
static bool can_read(const char *byte)
{
	char copy;
	struct iovec to = {&copy, 1}, from = {(void *)(uintptr_t)byte, 1};

	return process_vm_readv(shca_self.proc->pid, &to, 1, &from, 1, 0) == 1;
}

/* Returns true if each page of these pieces of own memory can be read. */
static bool own_memory_there(const struct iovec *iov, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const char *p = iov[i].iov_base;

		for (size_t at = 0; at < iov[i].iov_len; at += 4096)
			if (!can_read(p + at))
				return false;
		/* The pieces need not begin at a page. */
		if (iov[i].iov_len && !can_read(p + iov[i].iov_len - 1))
			return false;
	}
	return true;
}

/*
 * Returns how many bytes to copy before the last word. Adapters place data in order of address, and
 * a program that polls the last byte counts on that. The kernel copies with a string operation,
 * whose stores may become visible in any order, but not before those of an earlier operation: hence
 * the last word is copied apart.
 */
static size_t before_last_word(const void *to, size_t len)
{
	uintptr_t start = (uintptr_t)to, last = (start + len - 1) & ~(uintptr_t)7;

	assert(len);
	return last > start ? last - start : 0;
}

/* Copies with the last word last, where the kernel refuses to copy. */
static void copy_in_order(char *to, const char *from, size_t len)
{
	size_t first = before_last_word(to, len);
	char last[8];

	memcpy(last, from + first, len - first);
	memmove(to, from, first);
	atomic_thread_fence(memory_order_release);
	memcpy(to + first, last, len - first);
}

/* Splits the last of n vectors, for which there is room. Returns the new number of vectors. */
static unsigned split_last(struct iovec *iov, unsigned n, const void *to)
{
	size_t len = iov[n - 1].iov_len, first = before_last_word(to, len);

	if (!first)
		return n;
	iov[n - 1].iov_len = first;
	iov[n] = (struct iovec){(char *)iov[n - 1].iov_base + first, len - first};
	return n + 1;
}

/* Copies whole vectors of the same total length by one system call. There is room for one more
 * at own[n]. */
static int vm_move(unsigned other, bool write, struct iovec *own, struct iovec *theirs, unsigned n)
{
	size_t last = own[n - 1].iov_len;
	unsigned nown;
	int pid =
		atomic_load_explicit(&shca_self.fabric.hdr->procs[other].pid, memory_order_relaxed);
	ssize_t want = 0, got;

	for (unsigned i = 0; i < n; i++)
		want += (ssize_t)own[i].iov_len;
	nown = split_last(own, n, write ? theirs[n - 1].iov_base : own[n - 1].iov_base);
	got = write ? process_vm_writev(pid, own, nown, theirs, n, 0)
		    : process_vm_readv(pid, own, nown, theirs, n, 0);
	own[n - 1].iov_len = last;
	if (got == want)
		return 0;
	if (got < 0 && errno != EFAULT)
		return -errno;
	return own_memory_there(own, n) ? -EREMOTEIO : -EFAULT;
}

static uint64_t own_bounce(struct shca_exec *exec)
{
	unsigned i = (unsigned)(exec - shca_self.proc->exec);
	uint64_t off = atomic_load(&bounce[i]);

	if (!off) {
		off = shca_arena_alloc(&shca_self.fabric, shca_self.slot, BOUNCE_BYTES);
		atomic_store(&bounce[i], off);
	}
	return off;
}

/* Asks process `other` to copy between this process's bounce buffer and its own memory, and
 * waits. */
static int ask(struct shca_exec *exec, unsigned other, bool write, uint64_t addr, uint64_t len)
{
	struct shca_proc *proc = &shca_self.fabric.hdr->procs[other];
	uint64_t state = atomic_load(
		&proc->state); /* with its generation, because a slot may be used again */
	uint32_t to = SHCA_TAG(other, state) << 8, asked = to | SHCA_COPY_ASKED;
	uint64_t start = shca_real_now();

	exec->copy_write = write;
	exec->copy_addr = addr;
	exec->copy_len = len;
	atomic_store(&exec->copy, asked);
	atomic_fetch_or(&proc->copy_asked[shca_self.slot / 64], 1ULL << (shca_self.slot % 64));
	shca_proc_wake(proc);
	for (unsigned spins = 1;; spins++) {
		uint32_t s = atomic_load(&exec->copy);

		if (s == (to | SHCA_COPY_DONE))
			return 0;
		if (s == (to | SHCA_COPY_FAILED))
			return -EREMOTEIO;
		/* The other process may be waiting for this one in the same way: serve it, or
		 * both wait for ever. */
		if (!shca_peer_copy_serve())
			sched_yield();
		if (spins % 256)
			continue;
		if (atomic_load(&proc->state) != state ||
		    !shca_proc_running(&shca_self.fabric, other))
			return -ESRCH;
		/* A stopped target does not answer; a target that has begun has to finish. */
		if (shca_real_now() - start > ANSWER_NS &&
		    atomic_compare_exchange_strong(&exec->copy, &asked, SHCA_COPY_IDLE))
			return -ETIMEDOUT;
		asked = to | SHCA_COPY_ASKED;
	}
}

static int double_move(unsigned other, bool write, const struct iovec *own,
		       const struct iovec *theirs, unsigned n)
{
	struct shca_exec *exec = shca_epoch_self();
	uint64_t off = own_bounce(exec);
	char *buf = off ? shca_arena(&shca_self.fabric, shca_self.slot, off, BOUNCE_BYTES) : NULL;

	if (!buf)
		return -ENOMEM;
	exec->copy_bounce = off;
	for (unsigned i = 0; i < n; i++)
		for (size_t at = 0; at < own[i].iov_len;) {
			size_t part = own[i].iov_len - at;
			char *mine = (char *)own[i].iov_base + at;
			int rc;

			if (part > BOUNCE_BYTES)
				part = BOUNCE_BYTES;
			if (write)
				memcpy(buf, mine, part);
			rc = ask(exec, other, write, (uintptr_t)theirs[i].iov_base + at, part);
			if (rc)
				return rc;
			if (!write)
				memcpy(mine, buf, part);
			at += part;
		}
	return 0;
}

static void say_refused(int err)
{
	if (!atomic_exchange(&refused, true))
		shca_say("The kernel doesn't let processes of this fabric reach each "
			 "other's memory (process_vm_writev: %s), so data are copied twice, "
			 "through shared memory: allow ptrace among them "
			 "(kernel.yama.ptrace_scope, container seccomp) for full speed.",
			 strerror(err));
}

int shca_peer_copy(unsigned other, bool write, struct iovec *own, struct iovec *theirs, unsigned n)
{
	int64_t mode = shca_opt(&shca_self.fabric, SHCA_O_COPY);
	int rc;

	if (!n)
		return 0;
	/* If a process has replaced its program, these addresses mean nothing any more. */
	if (other != shca_self.slot && !shca_proc_engine_alive(&shca_self.fabric.hdr->procs[other]))
		return -ESRCH;
	if (other == shca_self.slot || (mode != SHCA_COPY_DOUBLE && !atomic_load(&refused))) {
		rc = vm_move(other, write, own, theirs, n);
		if ((rc != -EPERM && rc != -ENOSYS) || mode == SHCA_COPY_VM)
			return rc;
		if (other == shca_self.slot) {
			for (unsigned i = 0; i < n; i++)
				copy_in_order(write ? theirs[i].iov_base : own[i].iov_base,
					      write ? own[i].iov_base : theirs[i].iov_base,
					      own[i].iov_len);
			return 0;
		}
		say_refused(-rc);
	}
	return double_move(other, write, own, theirs, n);
}

bool shca_peer_copy_asked(void)
{
	uint64_t any = 0;

	for (unsigned i = 0; shca_self.proc && i < SHCA_MAX_PROCS / 64; i++)
		any |= atomic_load_explicit(&shca_self.proc->copy_asked[i], memory_order_relaxed);
	return any;
}

/*
 * Switches ThreadSanitizer off around a copy, because it can't see that the asking process orders
 * the copy: that process found the receive after the post, and completes the receive after the
 * copy.
 */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
static void ordered_by_peer(bool on)
{
	(on ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__, __LINE__);
	(on ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)(__FILE__, __LINE__);
}
#else
static void ordered_by_peer(bool on)
{
	(void)on;
}
#endif

/* Serves one request of another process, whose bounce buffer is in its arena. A request for more
 * bytes than the buffer has fails. */
static void serve(unsigned proc, struct shca_exec *exec)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	uint64_t len = __atomic_load_n(&exec->copy_len, __ATOMIC_RELAXED);
	char *theirs = len && len <= BOUNCE_BYTES
			       ? shca_arena(fabric, proc, exec->copy_bounce, BOUNCE_BYTES)
			       : NULL;
	struct iovec mine[2] = {{(void *)(uintptr_t)exec->copy_addr, len}};
	struct iovec buf = {theirs, len};
	uint32_t taken = shca_self.tag << 8 | SHCA_COPY_TAKEN;
	int rc;

	ordered_by_peer(true);
	rc = theirs ? vm_move(shca_self.slot, !exec->copy_write, mine, &buf, 1) : -ENOMEM;
	if (rc == -EPERM || rc == -ENOSYS) {
		copy_in_order(exec->copy_write ? mine->iov_base : buf.iov_base,
			      exec->copy_write ? buf.iov_base : mine->iov_base, buf.iov_len);
		rc = 0;
	}
	ordered_by_peer(false);
	shca_count(&fabric->hdr->hcas[shca_self.node * fabric->hdr->devices], SHCA_C_DOUBLE_COPY,
		   1);
	/* This process may have been stopped so long that the request is another process's. */
	atomic_compare_exchange_strong(
		&exec->copy, &taken, shca_self.tag << 8 | (rc ? SHCA_COPY_FAILED : SHCA_COPY_DONE));
}

bool shca_peer_copy_serve(void)
{
	bool did = false;

	if (!shca_peer_copy_asked())
		return false;
	for (unsigned p = 0; p < SHCA_MAX_PROCS; p++) {
		_Atomic uint64_t *word = &shca_self.proc->copy_asked[p / 64];
		uint64_t bit = 1ULL << (p % 64);

		/* The bit is cleared first: a request from now on sets it again. */
		if (!(atomic_load(word) & bit) || !(atomic_fetch_and(word, ~bit) & bit))
			continue;
		for (unsigned i = 0; i < SHCA_MAX_EXEC; i++) {
			struct shca_exec *exec = &shca_self.fabric.hdr->procs[p].exec[i];
			uint32_t asked = shca_self.tag << 8 | SHCA_COPY_ASKED;

			/* The word also names the target, so the exchange takes only the request
			 * that was seen. */
			if (atomic_compare_exchange_strong(&exec->copy, &asked,
							   shca_self.tag << 8 | SHCA_COPY_TAKEN)) {
				serve(p, exec);
				did = true;
			}
		}
	}
	return did;
}
