/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.h - lists of runs of memory, and copies between this process's memory and another's: with
 * loads and stores where the other memory can be attached (segment.h), else through peer_copy.h.
 */
#ifndef SHCA_MEM_H
#define SHCA_MEM_H

#include "hca/process.h"

/* A run of bytes in the address space of some process. */
struct shca_run {
	uint64_t addr;
	uint64_t len;
	bool null;                      /* no memory behind it: writes vanish, reads give zeros */
	bool on_demand;                 /* may turn out not to be there (ODP) */
	bool writable;                  /* registered with local write access */
	const struct shca_mr_entry *mr; /* region of memory that lies in a segment; else NULL */
};

#define SHCA_MAX_RUNS 32

/* The two ends of a transfer; one of the two processes is the calling one. */
struct shca_copy {
	_Atomic uint64_t *direct; /* counts copies that needed no system call; may be NULL */
	unsigned src_proc, dst_proc;
	unsigned nsrc, ndst;
	struct shca_run src[SHCA_MAX_RUNS];
	struct shca_run dst[SHCA_MAX_RUNS];
};

/* Brings pages in. Returns 0, or -EFAULT, as the kernel does, if they aren't there or may not be
 * written. */
int shca_mem_populate(uint64_t addr, uint64_t len, bool write);

/* Returns true if any of the runs may turn out not to be there. */
bool shca_mem_on_demand(const struct shca_run *runs, unsigned n);

/*
 * Copies bytes [off, off + len) from one list to the other. Returns 0, -EFAULT if own memory isn't
 * there, -EREMOTEIO if the other's isn't, or another error of shca_peer_copy(). The caller is
 * inside an epoch.
 */
int shca_mem_copy(const struct shca_copy *copy, uint64_t off, uint64_t len);

/* Copies the first len bytes of own runs into a flat buffer. Own memory that isn't there is a
 * SIGSEGV, as if the program touched it. */
void shca_mem_gather(void *to, const struct shca_run *runs, uint64_t len);
/* Copies a flat buffer into own runs. */
void shca_mem_scatter(const struct shca_run *runs, const void *from, uint64_t len);

enum shca_atomic { SHCA_CMP_SWAP, SHCA_FETCH_ADD };
/* Executes an operation that is atomic among all that go through `hca`, the target's HCA
 * (IBV_ATOMIC_HCA). `direct` counts words read without a system call; never NULL. Returns 0, an
 * error of shca_mem_copy(), or -EAGAIN if another process holds the lock for long: try again. */
int shca_mem_atomic(struct shca_hca *hca, unsigned proc, const struct shca_run *word,
		    enum shca_atomic op, uint64_t compare_add, uint64_t swap, uint64_t *old,
		    _Atomic uint64_t *direct);

#endif
