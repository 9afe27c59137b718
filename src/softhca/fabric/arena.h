/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - the calling process's own shared memory, for the rings that peers reach into. Page
 * granular. Memory is backed before it is handed out, so that a full /dev/shm is an ENOMEM here and
 * never a SIGBUS later.
 */
#ifndef SHCA_ARENA_H
#define SHCA_ARENA_H

#include "fabric.h"

/* Allocates `len` zeroed bytes, page aligned. Returns their offset in the own arena, or 0 if
 * there is no memory. Thread-safe. */
uint64_t shca_arena_alloc(struct shca_fabric *fabric, unsigned proc, uint64_t len);
/* Frees `len` bytes at `off`. No peer may reach them any more (epoch.h). */
void shca_arena_free(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t len);

/*
 * Reserve and free addresses for `len` bytes of which only the first `backed` have memory, which is
 * zeroed, for objects that are used bit by bit. shca_arena_reserve() returns their offset in the
 * own arena, or 0 if there is no memory. At first `backed` is what the object needs at once plus
 * SHCA_ARENA_FIRST, or all if that is less: small objects must be backed whole, because they are
 * cleared by writing. shca_arena_unreserve() takes the bytes that are backed by then.
 */
#define SHCA_ARENA_FIRST (1ULL << 20)
uint64_t shca_arena_reserve(struct shca_fabric *fabric, unsigned proc, uint64_t len,
			    uint64_t backed);
void shca_arena_unreserve(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t len,
			  uint64_t backed);
/* Backs [off + backed, off + wanted) of any process's arena with zeroed memory. Memory that is
 * there stays, so several processes may do this at a time. Returns 0 or -ENOMEM. */
int shca_arena_back(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t backed,
		    uint64_t wanted);
/* Counts memory that shca_arena_back() backed, for `softhca stat`; one of the processes that backed
 * it calls this. */
void shca_arena_count(struct shca_fabric *fabric, unsigned proc, uint64_t backed, uint64_t wanted);
/* Forgets all that was handed out, in a forked child and when a slot is used again. proc_attach.c
 * calls this. */
void shca_arena_reset(void);
/* Punches out a dead process's arena. */
void shca_arena_drop(struct shca_fabric *fabric, unsigned proc);

#endif
