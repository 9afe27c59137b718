/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of sender-side copies: registered buffers of power-of-two sizes (and room for a header),
 * cut from slabs. One slab, for messages up to eager_limit, is there from the beginning, whatever
 * becomes of the memlock limit. Others are made when their size runs out, so that a small job locks
 * little memory; where the pool's limit is reached, a slab of another size with nothing in use
 * makes room.
 */
#include "net/net.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "net/mem.h"

#define HEADER   64u /* longest header before an eager message's data is 32 */
#define SLAB_MIN ((size_t)64 << 10)
#define SLAB_MAX ((size_t)256 << 10)
#define PER_SLAB 64u
#define SKIP     256u

struct tq_slab {
	struct tq_reg reg; /* first: a buffer's reg leads to its slab */
	int size;          /* index of it */
	char *mem;
	size_t len;
	uint32_t used;
	bool stays;
	void *free; /* stack of buffers, linked through their first word */
	struct tq_slab *next, *prev;
};

static size_t buffer_bytes(int size)
{
	return ((size_t)1 << (size + TQ_COPY_MIN_BITS)) + HEADER;
}

static int size_for(uint64_t len)
{
	int size = 0;

	while (size < TQ_COPY_CLASSES && buffer_bytes(size) < len)
		size++;
	return size;
}

static void slab_free(struct tq_net *net, struct tq_slab *slab)
{
	struct tq_mem *mem = net->mem;

	DL_DELETE(mem->slabs[slab->size], slab);
	mem->copies -= slab->len;
	tq_mem_free(net, slab->mem);
	free(slab);
}

/* Makes room for `len` bytes of slab within the limit. */
static bool make_room(struct tq_net *net, size_t len)
{
	struct tq_mem *mem = net->mem;
	struct tq_slab *slab, *next;
	uint64_t limit = (uint64_t)net->params->copy_pool;
	int size;

	for (size = 0; mem->copies + len > limit && size < TQ_COPY_CLASSES; size++) {
		DL_FOREACH_SAFE(mem->slabs[size], slab, next) {
			if (mem->copies + len <= limit)
				break;
			if (!slab->used && !slab->stays)
				slab_free(net, slab);
		}
	}
	return mem->copies + len <= limit;
}

static struct tq_slab *slab_make(struct tq_net *net, int size)
{
	size_t bytes = buffer_bytes(size), len = bytes * PER_SLAB, at;
	struct tq_slab *slab;

	if (len < SLAB_MIN)
		len = SLAB_MIN;
	if (len > SLAB_MAX)
		len = bytes > SLAB_MAX ? bytes : SLAB_MAX;
	len = (len + TQ_PAGE - 1) & ~(size_t)(TQ_PAGE - 1);
	if (net->mem->skip) {
		net->mem->skip--;
		return NULL;
	}
	if (!make_room(net, len))
		return NULL;
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return NULL;
	slab->mem = tq_mem_alloc(net, len, &slab->reg);
	if (!slab->mem) {
		net->mem->skip = SKIP;
		free(slab);
		return NULL;
	}
	slab->size = size;
	slab->len = len;
	for (at = 0; at + bytes <= len; at += bytes) {
		*(void **)(slab->mem + at) = slab->free;
		slab->free = slab->mem + at;
	}
	net->mem->copies += len;
	DL_PREPEND(net->mem->slabs[size], slab);
	return slab;
}

bool tq_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	struct tq_mem *mem = net->mem;
	int size = size_for(len);
	struct tq_slab *slab;

	if (size == TQ_COPY_CLASSES)
		return false;
	slab = mem->slabs[size];
	if (!slab || !slab->free)
		slab = slab_make(net, size);
	/* A buffer that is too large will do. */
	while (!slab && ++size < TQ_COPY_CLASSES) {
		if (mem->slabs[size] && mem->slabs[size]->free)
			slab = mem->slabs[size];
	}
	if (!slab) {
		net->scq.look = true; /* some may be back */
		return false;
	}
	sg->addr = slab->free;
	sg->len = len;
	sg->reg = &slab->reg;
	slab->free = *(void **)sg->addr;
	slab->used++;
	if (!slab->free) { /* behind those with a free one */
		DL_DELETE(mem->slabs[size], slab);
		DL_APPEND(mem->slabs[size], slab);
	}
	TQ_LEVEL(net->stats, copy_bytes, (int64_t)buffer_bytes(size));
	return true;
}

void tq_copy_put(struct tq_net *net, struct tq_sg *sg)
{
	struct tq_slab *slab = (struct tq_slab *)sg->reg;
	struct tq_mem *mem = net->mem;

	assert(slab->used);
	if (!slab->free) {
		DL_DELETE(mem->slabs[slab->size], slab);
		DL_PREPEND(mem->slabs[slab->size], slab);
	}
	*(void **)sg->addr = slab->free;
	slab->free = sg->addr;
	slab->used--;
	TQ_LEVEL(net->stats, copy_bytes, -(int64_t)buffer_bytes(slab->size));
	sg->reg = NULL;
}

uint64_t tq_copy_bytes(const struct tq_sg *sg)
{
	return buffer_bytes(((const struct tq_slab *)sg->reg)->size);
}

int tq_copies_open(struct tq_net *net)
{
	struct tq_slab *slab =
		slab_make(net, size_for((uint64_t)net->params->eager_limit + HEADER));

	if (!slab)
		return -ENOMEM;
	slab->stays = true;
	return 0;
}

void tq_copies_close(struct tq_net *net)
{
	int size;

	for (size = 0; size < TQ_COPY_CLASSES; size++)
		while (net->mem->slabs[size])
			slab_free(net, net->mem->slabs[size]);
}
