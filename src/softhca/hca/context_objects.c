/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context_objects.c - the lists of contexts and of their objects, all under one lock.
 */
#include "context_objects.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_context *contexts;

void shca_context_objects_open(struct shca_context *ctx)
{
	pthread_mutex_lock(&lock);
	ctx->fork_count = shca_self.fork_count;
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&lock);
}

void shca_context_objects_close(struct shca_context *ctx)
{
	struct shca_context **link = &contexts;

	pthread_mutex_lock(&lock);
	while (*link && *link != ctx)
		link = &(*link)->next;
	if (*link)
		*link = ctx->next;
	ctx->fork_count = SHCA_CLOSED;
	pthread_mutex_unlock(&lock);
}

void shca_context_objects_add(struct ibv_context *ibctx, struct shca_context_object *node,
			      enum shca_object_kind kind, void *object)
{
	struct shca_context *ctx = shca_ctx(ibctx);

	node->kind = kind;
	node->object = object;
	pthread_mutex_lock(&lock);
	node->link = &ctx->objects;
	node->next = ctx->objects;
	if (node->next)
		node->next->link = &node->next;
	ctx->objects = node;
	pthread_mutex_unlock(&lock);
}

/* Takes a node out of its list. Needs the lock. */
static void take_out(struct shca_context_object *node)
{
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
}

void shca_context_objects_remove(struct shca_context_object *node)
{
	pthread_mutex_lock(&lock);
	take_out(node);
	pthread_mutex_unlock(&lock);
}

void *shca_context_objects_find(const struct shca_context *ctx, enum shca_object_kind kind,
				uint32_t handle, uint32_t (*handle_of)(const void *object))
{
	void *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct shca_context *other = contexts; other; other = other->next)
		for (struct shca_context_object *node = other->objects; node; node = node->next)
			if (other->file == ctx->file && node->kind == kind &&
			    handle_of(node->object) == handle)
				found = node->object;
	pthread_mutex_unlock(&lock);
	return found;
}

struct shca_context *shca_context_objects_of_file(uint64_t file)
{
	struct shca_context *ctx;

	pthread_mutex_lock(&lock);
	for (ctx = contexts; ctx && ctx->file != file; ctx = ctx->next)
		;
	pthread_mutex_unlock(&lock);
	return ctx;
}

bool shca_context_objects_any(struct shca_context *ctx)
{
	bool owns;

	pthread_mutex_lock(&lock);
	owns = ctx->objects != NULL;
	pthread_mutex_unlock(&lock);
	return owns;
}

void *shca_context_objects_take(struct shca_context *ctx, enum shca_object_kind kind)
{
	struct shca_context_object *node;

	pthread_mutex_lock(&lock);
	for (node = ctx->objects; node && node->kind != kind; node = node->next)
		;
	if (node)
		take_out(node);
	pthread_mutex_unlock(&lock);
	return node ? node->object : NULL;
}

void shca_context_objects_each(struct shca_context *ctx,
			       void (*fn)(enum shca_object_kind kind, void *object))
{
	pthread_mutex_lock(&lock);
	for (struct shca_context_object *node = ctx->objects; node; node = node->next)
		fn(node->kind, node->object);
	pthread_mutex_unlock(&lock);
}

void shca_context_objects_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void shca_context_objects_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void shca_context_objects_fork_child(void (*fn)(struct shca_context *ctx))
{
	struct shca_context *inherited = contexts;

	/* By the thread that has locked it, of which the child has a copy. */
	pthread_mutex_unlock(&lock);
	contexts = NULL;
	shca_self.fork_count++;
	for (; inherited; inherited = inherited->next)
		fn(inherited);
}
