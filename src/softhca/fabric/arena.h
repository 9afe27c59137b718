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
/* Forgets all that was handed out: in a forked child, and when a slot is used again (proc.c calls
 * it). */
void shca_arena_reset(void);
/* Punches out a dead process's arena. */
void shca_arena_drop(struct shca_fabric *f, unsigned proc);

#endif
