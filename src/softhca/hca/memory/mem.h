/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.h - moving bytes between this process's memory and another's: a few by loads and stores where
 * it can be attached (segment.h), else by peer_copy.h.
 */
#ifndef SHCA_MEM_H
#define SHCA_MEM_H

#include "hca/objects.h"

/* A run of bytes at an address of some process. null: no memory behind it (writes vanish, reads
 * give zeros). */
struct shca_run {
	uint64_t addr;
	uint64_t len;
	bool null;
	bool on_demand;                 /* may turn out not to be there (ODP) */
	bool writable;                  /* registered with local write access */
	const struct shca_mr_entry *mr; /* of memory that lies in a segment (segment.h) */
};

#define SHCA_MAX_RUNS 32

/* The two ends of a transfer; one of the processes is the calling one. */
struct shca_copy {
	_Atomic uint64_t *direct; /* counts those that needed no system call; may be NULL */
	unsigned src_proc, dst_proc;
	unsigned nsrc, ndst;
	struct shca_run src[SHCA_MAX_RUNS];
	struct shca_run dst[SHCA_MAX_RUNS];
};

/* Brings the pages in, or says as the kernel would that they aren't there or may not be written:
 * -EFAULT. */
int shca_mem_populate(uint64_t addr, uint64_t len, bool write);

/* May any of it turn out not to be there? */
bool shca_runs_on_demand(const struct shca_run *runs, unsigned n);

/*
 * Moves bytes [off, off + len) of both lists. 0; -EFAULT: our own memory isn't there; -EREMOTEIO:
 * the other's isn't; -ESRCH: the other process is gone. Must be called inside an epoch.
 */
int shca_mem_copy(const struct shca_copy *c, uint64_t off, uint64_t len);

/* Gathers the first len bytes of own runs into a flat buffer, and back. Own memory that isn't there
 * is a SIGSEGV, as touching it would be. */
void shca_mem_gather(void *to, const struct shca_run *runs, uint64_t len);
void shca_mem_scatter(const struct shca_run *runs, const void *from, uint64_t len);

enum shca_atomic { SHCA_CMP_SWAP, SHCA_FETCH_ADD };
/* Atomic among all HCAs of the fabric that reach that memory (IBV_ATOMIC_HCA). *direct as in struct
 * shca_copy. Errors as above, and -EAGAIN: another holds the lock for long, come again. */
int shca_mem_atomic(struct shca_hca *hca, unsigned proc, const struct shca_run *word,
		    enum shca_atomic op, uint64_t compare_add, uint64_t swap, uint64_t *old,
		    _Atomic uint64_t *direct);

#endif
