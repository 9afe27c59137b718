/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context_objects.h - the contexts that this process has open, and what each of them owns: closing
 * one ends what is left in it, and a forked child disables what it inherits.
 */
#ifndef SHCA_CONTEXT_OBJECTS_H
#define SHCA_CONTEXT_OBJECTS_H

#include "objects.h"

/* A context was opened; it is this process's until it is closed or the process forks. */
void shca_context_objects_open(struct shca_context *ctx);
/* From here on it isn't, for shca_ours(); what it owns can still be taken. */
void shca_context_objects_close(struct shca_context *ctx);

/* An object was made in a context, or is about to go. */
void shca_context_objects_add(struct ibv_context *ctx, struct shca_context_object *o,
			      enum shca_object_kind kind, void *object);
void shca_context_objects_remove(struct shca_context_object *o);

/* Does it own anything? */
bool shca_context_objects_any(struct shca_context *ctx);
/* Takes an object of that kind out and returns it; NULL: there is none. */
void *shca_context_objects_take(struct shca_context *ctx, enum shca_object_kind kind);
/* Calls fn for all that a context owns; it must not make or end any. */
void shca_context_objects_each(struct shca_context *ctx,
			       void (*fn)(enum shca_object_kind kind, void *object));

/* Around a fork: nothing changes meanwhile. */
void shca_context_objects_fork_prepare(void);
void shca_context_objects_fork_parent(void);
/* In the child, first of all: none of it is this process's; fn is told each context. */
void shca_context_objects_fork_child(void (*fn)(struct shca_context *ctx));

#endif
