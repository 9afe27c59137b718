/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context_objects.h - the contexts that this process has open, and the objects of each. Closing a
 * context ends the objects that are left in it, and a forked child disables those that it inherits.
 */
#ifndef SHCA_CONTEXT_OBJECTS_H
#define SHCA_CONTEXT_OBJECTS_H

#include "context.h"

/* Kinds of objects, in the order in which the kernel ends them when a context is closed: users
 * before what they use. */
enum shca_object_kind {
	SHCA_OBJECT_QP,
	SHCA_OBJECT_SRQ,
	SHCA_OBJECT_MW,
	SHCA_OBJECT_MR,
	SHCA_OBJECT_DM,
	SHCA_OBJECT_CQ,
	SHCA_OBJECT_XRCD,
	SHCA_OBJECT_PD,
	SHCA_OBJECT_TD,
	SHCA_OBJECT_CHANNEL,
	SHCA_OBJECT_IMPORT, /* an object that was imported: another context ends it */
	SHCA_OBJECT_KINDS
};

/* A node in the list of a context's objects; each object embeds one. */
struct shca_context_object {
	struct shca_context_object *next;
	struct shca_context_object **link; /* the pointer that points to this node */
	void *object;
	enum shca_object_kind kind;
};

/* Adds a context that was just opened, which is this process's until it is closed or the process
 * forks. */
void shca_context_objects_open(struct shca_context *ctx);
/* Removes a context: shca_ours() is false for it from here on. Its objects can still be taken. */
void shca_context_objects_close(struct shca_context *ctx);

/* Adds an object that was made in a context. */
void shca_context_objects_add(struct ibv_context *ctx, struct shca_context_object *node,
			      enum shca_object_kind kind, void *object);
/* Removes an object that is about to be destroyed. */
void shca_context_objects_remove(struct shca_context_object *node);

/* Returns the object of that kind and with that handle in this context or in one that shares the
 * descriptor with it, or NULL if there is none. */
void *shca_context_objects_find(const struct shca_context *ctx, enum shca_object_kind kind,
				uint32_t handle, uint32_t (*handle_of)(const void *object));
/* Returns a context of this process whose descriptor has that inode, or NULL. */
struct shca_context *shca_context_objects_of_file(uint64_t file);

/* Returns true if a context has objects. */
bool shca_context_objects_any(struct shca_context *ctx);
/* Removes an object of that kind and returns it, or returns NULL if there is none. */
void *shca_context_objects_take(struct shca_context *ctx, enum shca_object_kind kind);
/* Calls fn for each object of a context; fn must not make or destroy any. */
void shca_context_objects_each(struct shca_context *ctx,
			       void (*fn)(enum shca_object_kind kind, void *object));

/* Locks the lists before a fork, so that the child gets them in order. */
void shca_context_objects_fork_prepare(void);
/* Unlocks the lists in the parent after a fork. */
void shca_context_objects_fork_parent(void);
/* Gives up all contexts in a forked child, and calls fn for each. Call it before anything else. */
void shca_context_objects_fork_child(void (*fn)(struct shca_context *ctx));

#endif
