/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.h - shared by the unit tests of fabric/: a fabric in which this process has a slot, and
 * children with slots of their own.
 */
#ifndef T_FIXTURE_H
#define T_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "check.h"

#include "fabric/fabric.h"

extern struct shca_fabric u_fab;
extern char u_dir[128], u_err[256];
extern struct shca_hca *u_hca; /* the first of the two adapters */
extern int u_slot;             /* this process's slot */

/* Returns the default options with another value for one of them. */
struct shca_config u_config(enum shca_opt o, int64_t value);
/* Makes a fabric with that option, and attaches to it. */
void u_start_with(enum shca_opt o, int64_t value);
/* cmocka fixtures: two nodes. */
int u_start(void **state);
int u_stop(void **state);
#define IN_FABRIC(test) cmocka_unit_test_setup_teardown(test, u_start, u_stop)

/* A child that has a slot of its own. u_fork() runs fn(slot, arg) in the child and returns when fn
 * has returned; the child then waits for u_kill(). */
struct u_child {
	pid_t pid;
	unsigned slot;
};
struct u_child u_fork(void (*fn)(unsigned slot, void *arg), void *arg);
void u_kill(struct u_child c);

/* Returns a new, unpublished entry of that kind, or NULL if there is none left. */
void *u_make(struct shca_hca *hca, enum shca_kind kind, unsigned slot, uint32_t *idx);
bool u_findable(struct shca_hca *hca, enum shca_kind kind, uint32_t number);

#endif
