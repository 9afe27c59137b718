/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "fabric/arena.h"
#include "fabric/proc.h"
#include "segment.h"

#define BOUNCE_BYTES (256u << 10)
#define MAX_VEC      128
#define MAX_PAYLOAD  4096 /* of --cqe-payload */

/* How long a target may take to begin a copy that it is asked for. */
#define ANSWER_NS 200000000u
/* How often an atomic tries for its lock before it lets others have their turn. */
#define LOCK_TRIES 2048

static const char zeros[64 << 10];

/* Set once the kernel refused process_vm_writev: every later copy goes through shared memory. */
static _Atomic bool refused;

/* Bounce buffer of each executor slot of this process, made on first use. */
static _Atomic uint64_t bounce[SHCA_MAX_EXEC];

void shca_mem_reset(void)
{
	for (unsigned i = 0; i < SHCA_MAX_EXEC; i++)
		atomic_store(&bounce[i], 0);
}

bool shca_runs_on_demand(const struct shca_run *runs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (runs[i].on_demand)
			return true;
	return false;
}

void shca_mem_gather(void *to, const struct shca_run *runs, uint64_t len)
{
	char *p = to;

	for (; len; runs++) {
		uint64_t n = runs->len < len ? runs->len : len;

		if (runs->null)
			memset(p, 0, n);
		else
			memcpy(p, (const void *)(uintptr_t)runs->addr, n);
		p += n;
		len -= n;
	}
}

void shca_mem_scatter(const struct shca_run *runs, const void *from, uint64_t len)
{
	const char *p = from;

	for (; len; runs++) {
		uint64_t n = runs->len < len ? runs->len : len;

		if (!runs->null)
			memcpy((void *)(uintptr_t)runs->addr, p, n);
		p += n;
		len -= n;
	}
}

/* Walks two run lists side by side. */
struct walk {
	const struct shca_run *r;
	uint64_t at; /* within *r */
};

static struct walk walk_to(const struct shca_run *r, uint64_t off)
{
	while (off >= r->len) {
		off -= r->len;
		r++;
	}
	return (struct walk){r, off};
}

static void walk_on(struct walk *w, uint64_t n, bool more)
{
	w->at += n;
	while (more && w->at == w->r->len) {
		w->r++;
		w->at = 0;
	}
}

static bool own_memory_there(const struct iovec *v, unsigned n)
{
	char byte;

	for (unsigned i = 0; i < n; i++) {
		const char *p = v[i].iov_base;
		struct iovec to = {&byte, 1};

		for (size_t at = 0; at < v[i].iov_len; at += 4096) {
			struct iovec from = {(void *)(uintptr_t)(p + at), 1};

			if (process_vm_readv(shca_self.proc->pid, &to, 1, &from, 1, 0) != 1)
				return false;
		}
	}
	return true;
}

/*
 * Adapters place data in order of address, and who polls the last byte counts on that. A string
 * operation, by which the kernel copies, may show its stores in any order, but not before those of
 * an earlier one. So the last word is copied apart. This is how long what comes before it is.
 */
static size_t before_last_word(const void *to, size_t len)
{
	uintptr_t start = (uintptr_t)to, last = (start + len - 1) & ~(uintptr_t)7;

	assert(len);
	return last > start ? last - start : 0;
}

/* The same where the kernel doesn't copy. */
static void copy_in_order(char *to, const char *from, size_t len)
{
	size_t first = before_last_word(to, len);
	char last[8];

	memcpy(last, from + first, len - first);
	memmove(to, from, first);
	atomic_thread_fence(memory_order_release);
	memcpy(to + first, last, len - first);
}

/* Splits the last of n vectors, for which there is room. How many there are then. */
static unsigned split_last(struct iovec *v, unsigned n, const void *to)
{
	size_t len = v[n - 1].iov_len, first = before_last_word(to, len);

	if (!first)
		return n;
	v[n - 1].iov_len = first;
	v[n] = (struct iovec){(char *)v[n - 1].iov_base + first, len - first};
	return n + 1;
}

/* Moves whole vectors by one system call; they have the same total length. There is room for one
 * more at own[n]. */
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

static uint64_t own_bounce(struct shca_exec *e)
{
	unsigned i = (unsigned)(e - shca_self.proc->exec);
	uint64_t off = atomic_load(&bounce[i]);

	if (!off) {
		off = shca_arena_alloc(&shca_self.fabric, shca_self.slot, BOUNCE_BYTES);
		atomic_store(&bounce[i], off);
	}
	return off;
}

/* Asks process `other` to copy between our bounce buffer and its memory, and waits. */
static int ask(struct shca_exec *e, unsigned other, bool write, uint64_t addr, uint64_t len)
{
	struct shca_proc *p = &shca_self.fabric.hdr->procs[other];
	uint64_t life = atomic_load(&p->state); /* its generation too: a slot may be used again */
	uint32_t to = SHCA_TAG(other, life) << 8, asked = to | SHCA_COPY_ASKED;
	uint64_t start = shca_now();

	e->copy_write = write;
	e->copy_addr = addr;
	e->copy_len = len;
	atomic_store(&e->copy, asked);
	atomic_fetch_or(&p->copy_asked[shca_self.slot / 64], 1ULL << (shca_self.slot % 64));
	shca_proc_ring(p);
	for (unsigned spins = 1;; spins++) {
		uint32_t s = atomic_load(&e->copy);

		if (s == (to | SHCA_COPY_DONE))
			return 0;
		if (s == (to | SHCA_COPY_FAILED))
			return -EREMOTEIO;
		/* It may be waiting for us in the same way: serve it, or both wait for ever. */
		if (!shca_mem_serve())
			sched_yield();
		if (spins % 256)
			continue;
		if (atomic_load(&p->state) != life || !shca_proc_running(&shca_self.fabric, other))
			return -ESRCH;
		/* A target that is stopped does not answer; one that has begun has to finish. */
		if (shca_now() - start > ANSWER_NS &&
		    atomic_compare_exchange_strong(&e->copy, &asked, SHCA_COPY_IDLE))
			return -ETIMEDOUT;
		asked = to | SHCA_COPY_ASKED;
	}
}

static int double_move(unsigned other, bool write, const struct iovec *own,
		       const struct iovec *theirs, unsigned n)
{
	struct shca_exec *e = shca_exec_self();
	uint64_t off = own_bounce(e);
	char *buf = off ? shca_arena(&shca_self.fabric, shca_self.slot) + off : NULL;

	if (!buf)
		return -ENOMEM;
	e->copy_bounce = off;
	for (unsigned i = 0; i < n; i++)
		for (size_t at = 0; at < own[i].iov_len;) {
			size_t part = own[i].iov_len - at;
			char *mine = (char *)own[i].iov_base + at;
			int r;

			if (part > BOUNCE_BYTES)
				part = BOUNCE_BYTES;
			if (write)
				memcpy(buf, mine, part);
			r = ask(e, other, write, (uintptr_t)theirs[i].iov_base + at, part);
			if (r)
				return r;
			if (!write)
				memcpy(mine, buf, part);
			at += part;
		}
	return 0;
}

static void say_refused(int err)
{
	if (!atomic_exchange(&refused, true))
		fprintf(stderr,
			"softhca: the kernel does not let processes of this fabric reach each "
			"other's "
			"memory (process_vm_writev: %s); data is copied twice through shared "
			"memory "
			"instead. Allow ptrace among them (kernel.yama.ptrace_scope, container "
			"seccomp) for full speed.\n",
			strerror(err));
}

static int move(unsigned other, bool write, struct iovec *own, struct iovec *theirs, unsigned n)
{
	int64_t mode = shca_opt(&shca_self.fabric, SHCA_O_COPY);
	int r;

	if (!n)
		return 0;
	if (other == shca_self.slot || (mode != SHCA_COPY_DOUBLE && !atomic_load(&refused))) {
		r = vm_move(other, write, own, theirs, n);
		if ((r != -EPERM && r != -ENOSYS) || mode == SHCA_COPY_VM)
			return r;
		if (other == shca_self.slot) {
			for (unsigned i = 0; i < n; i++)
				copy_in_order(write ? theirs[i].iov_base : own[i].iov_base,
					      write ? own[i].iov_base : theirs[i].iov_base,
					      own[i].iov_len);
			return 0;
		}
		say_refused(-r);
	}
	return double_move(other, write, own, theirs, n);
}

/* Only requests that a completion could carry: for that little, own memory is touched here too, and
 * if it isn't there that is a SIGSEGV. `there` is all that the request names. */
static bool directly(const struct shca_run *there, uint64_t len, const struct shca_run *own,
		     unsigned n)
{
	return there->mr && len <= there->len && !shca_runs_on_demand(own, n) &&
	       there->len <= (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CQE_PAYLOAD);
}

static bool copy_directly(const struct shca_copy *c, bool write, unsigned other, uint64_t len)
{
	const struct shca_run *there = write ? c->dst : c->src;
	char flat[MAX_PAYLOAD];
	bool did;

	if (!directly(there, len, write ? c->src : c->dst, write ? c->nsrc : c->ndst) ||
	    len > sizeof(flat))
		return false;
	if (write)
		shca_mem_gather(flat, c->src, len);
	did = write ? shca_segment_write(there, other, flat, len)
		    : shca_segment_read(there, other, flat, len);
	if (did && !write)
		shca_mem_scatter(c->dst, flat, len);
	if (did && c->direct)
		shca_add(c->direct, 1);
	return did;
}

int shca_mem_copy(const struct shca_copy *c, uint64_t off, uint64_t len)
{
	bool write = c->src_proc == shca_self.slot;
	unsigned other = write ? c->dst_proc : c->src_proc;
	struct iovec own[MAX_VEC + 1], theirs[MAX_VEC];
	struct walk s, d;
	unsigned n = 0;

	if (!len)
		return 0;
	if (!off && copy_directly(c, write, other, len))
		return 0;
	s = walk_to(c->src, off);
	d = walk_to(c->dst, off);
	while (len) {
		uint64_t part = s.r->len - s.at;

		if (part > d.r->len - d.at)
			part = d.r->len - d.at;
		if (part > len)
			part = len;
		if (s.r->null && part > sizeof(zeros))
			part = sizeof(zeros);
		/*
		 * Zeros come from our own memory, so a read of a null source becomes a local fill.
		 */
		if (!d.r->null && s.r->null && !write) {
			memset((void *)(uintptr_t)(d.r->addr + d.at), 0, part);
		} else if (!d.r->null) {
			struct iovec from = {s.r->null ? (void *)(uintptr_t)zeros
						       : (void *)(uintptr_t)(s.r->addr + s.at),
					     part};
			struct iovec to = {(void *)(uintptr_t)(d.r->addr + d.at), part};

			own[n] = write ? from : to;
			theirs[n++] = write ? to : from;
		}
		len -= part;
		walk_on(&s, part, len);
		walk_on(&d, part, len);
		if (n == MAX_VEC || !len) {
			int r = move(other, write, own, theirs, n);

			if (r)
				return r;
			n = 0;
		}
	}
	return 0;
}

/*
 * The lock names its holder, so one that was killed is found and passed over: at worst its
 * operation did not happen, or did and was never answered, which a requester that is gone can't
 * tell apart. Memory that hashes elsewhere has another lock, so a holder that is stopped holds up
 * few; nobody waits for it for long.
 */
static bool atomic_unit_lock(_Atomic uint32_t *lock)
{
	uint32_t me = shca_self.slot + 1;

	for (unsigned tries = 1; tries <= LOCK_TRIES; tries++) {
		uint32_t holder = 0;

		if (atomic_compare_exchange_strong(lock, &holder, me))
			return true;
		if (tries % 64)
			continue;
		/* The holder may have asked us to copy for it. */
		if (!shca_mem_serve())
			sched_yield();
		if (tries % 512 == 0 && holder &&
		    !shca_proc_running(&shca_self.fabric, holder - 1) &&
		    atomic_compare_exchange_strong(lock, &holder, me))
			return true;
	}
	return false;
}

/* The word of an atomic, from there (true: or to there). */
static int move_word(const struct shca_run *word, unsigned proc, bool write, uint64_t *own,
		     _Atomic uint64_t *direct)
{
	struct iovec mine[2] = {{own, 8}}, theirs = {(void *)(uintptr_t)word->addr, 8};

	if (!directly(word, 8, NULL, 0) || !(write ? shca_segment_write(word, proc, own, 8)
						   : shca_segment_read(word, proc, own, 8)))
		return move(proc, write, mine, &theirs, 1);
	if (!write)
		shca_add(direct, 1);
	return 0;
}

int shca_mem_atomic(struct shca_hca *hca, unsigned proc, const struct shca_run *word,
		    enum shca_atomic op, uint64_t compare_add, uint64_t swap, uint64_t *old,
		    _Atomic uint64_t *direct)
{
	uint64_t hash = ((word->addr >> 3) + proc) * 0x9e3779b97f4a7c15ULL;
	_Atomic uint32_t *lock = &hca->atomic_locks[hash >> 58];
	uint64_t now = 0;
	int r;

	static_assert(SHCA_ATOMIC_LOCKS == 64, "six bits of the hash");
	if (!atomic_unit_lock(lock))
		return -EAGAIN;
	r = move_word(word, proc, false, old, direct);
	if (!r && (op == SHCA_FETCH_ADD || *old == compare_add)) {
		now = op == SHCA_FETCH_ADD ? *old + compare_add : swap;
		r = move_word(word, proc, true, &now, direct);
	}
	atomic_store(lock, 0);
	return r;
}

bool shca_mem_asked(void)
{
	uint64_t any = 0;

	for (unsigned i = 0; shca_self.proc && i < SHCA_MAX_PROCS / 64; i++)
		any |= atomic_load_explicit(&shca_self.proc->copy_asked[i], memory_order_relaxed);
	return any;
}

/*
 * ThreadSanitizer can't see that what is copied for another process is ordered by that process: it
 * found the receive after it was posted, and it completes it after this.
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

/* One request of another process: its bounce buffer is in its arena. */
static void serve(unsigned proc, struct shca_exec *e)
{
	struct shca_fabric *f = &shca_self.fabric;
	char *arena = shca_arena(f, proc);
	struct iovec mine[2] = {{(void *)(uintptr_t)e->copy_addr, e->copy_len}};
	struct iovec buf = {arena + e->copy_bounce, e->copy_len};
	int r;

	ordered_by_peer(true);
	r = arena ? vm_move(shca_self.slot, !e->copy_write, mine, &buf, 1) : -ENOMEM;
	if (r == -EPERM || r == -ENOSYS) {
		copy_in_order(e->copy_write ? mine->iov_base : buf.iov_base,
			      e->copy_write ? buf.iov_base : mine->iov_base, buf.iov_len);
		r = 0;
	}
	ordered_by_peer(false);
	shca_count(&f->hdr->hcas[shca_self.node * f->hdr->devices], SHCA_C_DOUBLE_COPY, 1);
	atomic_store(&e->copy, shca_self.tag << 8 | (r ? SHCA_COPY_FAILED : SHCA_COPY_DONE));
}

bool shca_mem_serve(void)
{
	bool did = false;

	if (!shca_mem_asked())
		return false;
	for (unsigned p = 0; p < SHCA_MAX_PROCS; p++) {
		_Atomic uint64_t *word = &shca_self.proc->copy_asked[p / 64];
		uint64_t bit = 1ULL << (p % 64);

		/* The bit goes first: who asks from now on sets it again. */
		if (!(atomic_load(word) & bit) || !(atomic_fetch_and(word, ~bit) & bit))
			continue;
		for (unsigned i = 0; i < SHCA_MAX_EXEC; i++) {
			struct shca_exec *e = &shca_self.fabric.hdr->procs[p].exec[i];
			uint32_t asked = shca_self.tag << 8 | SHCA_COPY_ASKED;

			/* One word says of whom it is asked too: what is taken is what was seen. */
			if (atomic_compare_exchange_strong(&e->copy, &asked,
							   shca_self.tag << 8 | SHCA_COPY_TAKEN)) {
				serve(p, e);
				did = true;
			}
		}
	}
	return did;
}
