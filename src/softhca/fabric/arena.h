/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - the calling process's own shared memory, for the rings that peers reach into. Page
 * granular; memory is backed before it is handed out, so a full /dev/shm is an ENOMEM here and
 * never a SIGBUS later.
 */
#ifndef SHCA_ARENA_H
#define SHCA_ARENA_H

#include "fabric.h"

/* An offset in the own arena of `len` zeroed bytes, page aligned; 0 = no memory. Thread-safe. */
uint64_t shca_arena_alloc(struct shca_fabric *f, unsigned proc, uint64_t len);
/* Gives it and its pages back. No peer may reach it any more (epoch.h). */
void shca_arena_free(struct shca_fabric *f, unsigned proc, uint64_t off, uint64_t len);

/*
 * The same of what is used bit by bit: addresses for `len` bytes, of which the first `backed` have
 * memory. That is SHCA_ARENA_FIRST at first, or all if it is less.
 */
#define SHCA_ARENA_FIRST (1ULL << 20)
uint64_t shca_arena_reserve(struct shca_fabric *f, unsigned proc, uint64_t len, uint64_t backed);
void shca_arena_unreserve(struct shca_fabric *f, unsigned proc, uint64_t off, uint64_t len,
			  uint64_t backed);
/* Puts zeroed memory behind [off + backed, off + wanted) of anybody's arena; what has some keeps
 * it, so that several may do it at a time. 0 or -ENOMEM. */
int shca_arena_back(struct shca_fabric *f, unsigned proc, uint64_t off, uint64_t backed,
		    uint64_t wanted);
/* Counts what was backed so, for `softhca stat`; by one of those who did. */
void shca_arena_count(struct shca_fabric *f, unsigned proc, uint64_t backed, uint64_t wanted);
/* Forgets all that was handed out: in a forked child, and when a slot is used again (proc.c calls
 * it). */
void shca_arena_reset(void);
/* Punches out a dead process's arena. */
void shca_arena_drop(struct shca_fabric *f, unsigned proc);

#endif
