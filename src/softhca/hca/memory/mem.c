/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c - gathering, scattering and copying runs; atomics.
 */
#include "mem.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "fabric/proc.h"
#include "peer_copy.h"
#include "segment.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Pieces of one copy by a system call: more take several calls. A choice: few messages have more,
 * and both lists are on the stack of the thread that sends. */
#define MAX_VEC 16

/* Bytes that loads and stores move at a time. Each part but the first begins at a multiple of this
 * in the other memory, so that no aligned unit is split. */
#define PART 512u

/* Number of tries that an atomic makes for its lock before it gives up with -EAGAIN, and comes
 * again later. A choice: one in 64 tries yields, and one in 512 asks the kernel for the holder. */
#define LOCK_TRIES 2048

static const char zeros[64 << 10];

bool shca_mem_on_demand(const struct shca_run *runs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (runs[i].on_demand)
			return true;
	return false;
}

/* Returns true if the kernel knows the advice, by a page that can be populated. */
static bool knows_populate(void)
{
	uintptr_t here = (uintptr_t)&here & ~(uintptr_t)4095;

	return !madvise((void *)here, 4096, MADV_POPULATE_READ);
}

int shca_mem_populate(uint64_t addr, uint64_t len, bool write)
{
	uint64_t first = addr & ~4095ULL;
	uint64_t bytes = ((addr + len + 4095) & ~4095ULL) - first;

	if (addr + len < addr)
		return -EFAULT;
	if (!madvise((void *)(uintptr_t)first, bytes,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	/* A mapping that may not be accessed so gives EINVAL, too. */
	if (errno != EINVAL || knows_populate())
		return -EFAULT;
	/* A kernel before 5.14: check at least that the memory is mapped. */
	for (uint64_t at = first; at < first + bytes; at += 4096) {
		unsigned char in;

		if (mincore((void *)(uintptr_t)at, 1, &in))
			return -EFAULT;
	}
	return 0;
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

/* A place in a list of runs. */
struct walk {
	const struct shca_run *run;
	uint64_t at; /* offset within *run */
};

static struct walk walk_to(const struct shca_run *run, uint64_t off)
{
	while (off >= run->len) {
		off -= run->len;
		run++;
	}
	return (struct walk){run, off};
}

static void walk_on(struct walk *walk, uint64_t n, bool more)
{
	walk->at += n;
	while (more && walk->at == walk->run->len) {
		walk->run++;
		walk->at = 0;
	}
}

/* Returns true if loads and stores may do a request. Own memory that isn't there is a SIGSEGV then,
 * so the request must not be larger than a message that a completion may carry, which takes the
 * same risk. `there` is the whole memory that the request names. */
static bool directly(const struct shca_run *there, uint64_t len, const struct shca_run *own,
		     unsigned n)
{
	return there->mr && len <= there->len && !shca_mem_on_demand(own, n) &&
	       there->len <= (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CQE_PAYLOAD);
}

/* Copies n bytes between a buffer and own runs, from a place in these on, which moves on. */
static void move_flat(char *flat, struct walk *own, uint64_t n, bool gather)
{
	while (n) {
		struct shca_run run = *own->run;
		uint64_t part = run.len - own->at < n ? run.len - own->at : n;

		run.addr += own->at;
		if (gather)
			shca_mem_gather(flat, &run, part);
		else
			shca_mem_scatter(&run, flat, part);
		flat += part;
		n -= part;
		walk_on(own, part, n);
	}
}

/* Not inlined: shca_mem_copy() has two lists on the stack. */
static __attribute__((noinline)) bool copy_directly(const struct shca_copy *copy, bool write,
						    unsigned other, uint64_t len)
{
	const struct shca_run *there = write ? copy->dst : copy->src;
	const struct shca_run *runs = write ? copy->src : copy->dst;
	struct walk own = {runs, 0};
	char flat[PART];

	if (!directly(there, len, runs, write ? copy->nsrc : copy->ndst))
		return false;
	for (uint64_t at = 0, n; at < len; at += n) {
		struct shca_run part = *there;

		part.addr += at;
		n = PART - part.addr % PART;
		n = n < len - at ? n : len - at;
		part.len = n;
		if (write) {
			move_flat(flat, &own, n, true);
			if (!shca_segment_write(&part, other, flat, n))
				return false;
		} else {
			if (!shca_segment_read(&part, other, flat, n))
				return false;
			move_flat(flat, &own, n, false);
		}
	}
	if (copy->direct)
		shca_add(copy->direct, 1);
	return true;
}

/*
 * Brings the pages of an on-demand region in, with the access that it was registered with: a region
 * with write access brings in no page that may only be read, not even to send it. (The access of
 * another process's region isn't known here.)
 */
static bool page_in(const struct shca_run *own, uint64_t at, uint64_t len)
{
	return !own->on_demand || !own->writable || !shca_mem_populate(own->addr + at, len, true);
}

int shca_mem_copy(const struct shca_copy *copy, uint64_t off, uint64_t len)
{
	bool write = copy->src_proc == shca_self.slot;
	unsigned other = write ? copy->dst_proc : copy->src_proc;
	struct iovec own[MAX_VEC + 1], theirs[MAX_VEC];
	struct walk src, dst;
	unsigned n = 0;

	if (!len)
		return 0;
	if (!off && copy_directly(copy, write, other, len))
		return 0;
	src = walk_to(copy->src, off);
	dst = walk_to(copy->dst, off);
	while (len) {
		uint64_t part = src.run->len - src.at;

		if (part > dst.run->len - dst.at)
			part = dst.run->len - dst.at;
		if (part > len)
			part = len;
		if (src.run->null && part > sizeof(zeros))
			part = sizeof(zeros);
		if (write && !page_in(src.run, src.at, part))
			return -EFAULT;
		/*
		 * Zeros come from own memory, so a read of a null source becomes a local fill.
		 */
		if (!dst.run->null && src.run->null && !write) {
			memset((void *)(uintptr_t)(dst.run->addr + dst.at), 0, part);
		} else if (!dst.run->null) {
			struct iovec from = {src.run->null
						     ? (void *)(uintptr_t)zeros
						     : (void *)(uintptr_t)(src.run->addr + src.at),
					     part};
			struct iovec to = {(void *)(uintptr_t)(dst.run->addr + dst.at), part};

			own[n] = write ? from : to;
			theirs[n++] = write ? to : from;
		}
		len -= part;
		walk_on(&src, part, len);
		walk_on(&dst, part, len);
		if (n == MAX_VEC || !len) {
			int rc = shca_peer_copy(other, write, own, theirs, n);

			if (rc)
				return rc;
			n = 0;
		}
	}
	return 0;
}

/*
 * Takes the lock of an atomic. Returns false if another process holds the lock for long. The lock
 * names its holder, so that a killed holder is found and passed over: at worst its operation did
 * not happen, or did and was never answered, which a dead requester can't tell apart. Memory with
 * another hash has another lock, so a stopped holder holds up few others.
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
		/* The holder may be waiting for this process to copy. */
		if (!shca_peer_copy_serve())
			sched_yield();
		if (tries % 512 == 0 && holder &&
		    !shca_proc_running(&shca_self.fabric, holder - 1) &&
		    atomic_compare_exchange_strong(lock, &holder, me))
			return true;
	}
	return false;
}

/* Fetches the word of an atomic or, with `write`, stores it. */
static int move_word(const struct shca_run *word, unsigned proc, bool write, uint64_t *own,
		     _Atomic uint64_t *direct)
{
	struct iovec mine[2] = {{own, 8}}, theirs = {(void *)(uintptr_t)word->addr, 8};

	if (!directly(word, 8, NULL, 0) || !(write ? shca_segment_write(word, proc, own, 8)
						   : shca_segment_read(word, proc, own, 8)))
		return shca_peer_copy(proc, write, mine, &theirs, 1);
	if (!write)
		shca_add(direct, 1);
	return 0;
}

int shca_mem_atomic(struct shca_hca *hca, unsigned proc, const struct shca_run *word,
		    enum shca_atomic op, uint64_t compare_add, uint64_t swap, uint64_t *old,
		    _Atomic uint64_t *direct)
{
	/* Several processes may map and register the same memory at several places: only the
	 * offset within a page is the same for all. */
	uint64_t hash = ((word->addr & 4095) >> 3) * 0x9e3779b97f4a7c15ULL;
	_Atomic uint32_t *lock = &hca->atomic_locks[hash >> 58];
	uint64_t now = 0;
	int rc;

	static_assert(SHCA_ATOMIC_LOCKS == 64, "six bits of the hash");
	if (!atomic_unit_lock(lock))
		return -EAGAIN;
	rc = move_word(word, proc, false, old, direct);
	if (!rc && (op == SHCA_FETCH_ADD || *old == compare_add)) {
		now = op == SHCA_FETCH_ADD ? *old + compare_add : swap;
		rc = move_word(word, proc, true, &now, direct);
	}
	atomic_store(lock, 0);
	return rc;
}
