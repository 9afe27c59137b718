/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool has registered buffers of power-of-two sizes (and room for a header), cut from slabs.
 * One slab, for messages up to eager_limit, is made when the pool is opened and is never freed, so
 * it serves such messages even where no more memory can be registered. Others are made when their
 * size runs out, so that a small job locks little memory. Where the pool's limit is reached, or
 * other memory can't be registered, slabs with nothing in use are freed.
 */
#include "net/adapter/copy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/mem.h"

/* The longest header before an eager message's data (EAGER), rounded up to cache lines. */
#define HEADER 128u
static_assert(sizeof(struct tq_msg_eager) + TQ_HEADER_MAX <= HEADER, "the header has room");

/* Bytes and buffers of a slab. */
#define SLAB_MIN ((size_t)64 << 10)
#define SLAB_MAX ((size_t)256 << 10)
#define PER_SLAB 64u
/* Slabs that are not tried after one that could not be registered, because each try is a mapping
 * and a registration. */
#define SKIP 256u

/* Buffers in the reserves: of small messages, and of pieces. A choice: one of each would do for
 * progress; with more, that many go at once when the pool is used up. */
#define MSGS   64u
#define PIECES 4u

struct tq_slab {
	struct tq_reg reg; /* first: a buffer's reg leads to its slab */
	int size;          /* index of the size of its buffers */
	char *mem;
	size_t len;
	uint32_t used; /* buffers in use */
	bool stays;    /* the slab is never freed to make room */
	void *free;    /* stack of buffers, linked through their first word */
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
	struct tq_copies *copies = net->copies;

	DL_DELETE(copies->slabs[slab->size], slab);
	copies->bytes -= slab->len;
	tq_mem_free(net, slab->mem);
	free(slab);
}

/* Frees a slab with nothing in use. Returns false if there is none. */
static bool free_idle(struct tq_net *net)
{
	struct tq_slab *slab;

	for (int size = 0; size < TQ_COPY_CLASSES; size++) {
		DL_FOREACH(net->copies->slabs[size], slab) {
			if (slab->used || slab->stays)
				continue;
			slab_free(net, slab);
			return true;
		}
	}
	return false;
}

/* Makes room for `len` bytes of slab within the limit. */
static bool make_room(struct tq_net *net, size_t len)
{
	while (net->copies->bytes + len > (uint64_t)net->params->copy_pool) {
		if (!free_idle(net))
			return false;
	}
	return true;
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
	if (net->copies->skip) {
		net->copies->skip--;
		return NULL;
	}
	if (!make_room(net, len))
		return NULL;
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return NULL;
	slab->mem = tq_mem_alloc(net, len, &slab->reg);
	if (!slab->mem) {
		net->copies->skip = SKIP;
		free(slab);
		return NULL;
	}
	slab->size = size;
	slab->len = len;
	for (at = 0; at + bytes <= len; at += bytes) {
		*(void **)(slab->mem + at) = slab->free;
		slab->free = slab->mem + at;
	}
	net->copies->bytes += len;
	DL_PREPEND(net->copies->slabs[size], slab);
	return slab;
}

bool tq_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	struct tq_copies *copies = net->copies;
	int size = size_for(len);
	struct tq_slab *slab;

	tq_assert_held(net->lock);
	if (size == TQ_COPY_CLASSES)
		return false;
	slab = copies->slabs[size];
	if (!slab || !slab->free)
		slab = slab_make(net, size);
	/* A larger buffer will do. */
	while (!slab && ++size < TQ_COPY_CLASSES) {
		if (copies->slabs[size] && copies->slabs[size]->free)
			slab = copies->slabs[size];
	}
	if (!slab) {
		net->scq.look = true; /* copies may have come back */
		return false;
	}
	sg->addr = slab->free;
	sg->len = len;
	sg->reg = &slab->reg;
	slab->free = *(void **)sg->addr;
	slab->used++;
	if (!slab->free) { /* behind slabs with a free buffer */
		DL_DELETE(copies->slabs[size], slab);
		DL_APPEND(copies->slabs[size], slab);
	}
	TQ_LEVEL(net->stats, copy_bytes, (int64_t)buffer_bytes(size));
	return true;
}

static void pool_put(struct tq_net *net, const struct tq_sg *sg)
{
	struct tq_slab *slab = (struct tq_slab *)sg->reg;
	struct tq_copies *copies = net->copies;

	assert(slab->used);
	if (!slab->free) {
		DL_DELETE(copies->slabs[slab->size], slab);
		DL_PREPEND(copies->slabs[slab->size], slab);
	}
	*(void **)sg->addr = slab->free;
	slab->free = sg->addr;
	slab->used--;
	TQ_LEVEL(net->stats, copy_bytes, -(int64_t)buffer_bytes(slab->size));
}

/* Makes the slab for messages up to eager_limit, which stays. */
static int pool_open(struct tq_net *net)
{
	struct tq_slab *slab =
		slab_make(net, size_for((uint64_t)net->params->eager_limit + HEADER));

	if (!slab)
		return -ENOMEM;
	slab->stays = true;
	return 0;
}

static void pool_close(struct tq_net *net)
{
	for (int size = 0; size < TQ_COPY_CLASSES; size++) {
		while (net->copies->slabs[size])
			slab_free(net, net->copies->slabs[size]);
	}
}

/* ---- the reserves ---- */

static int reserve_open(struct tq_net *net, struct tq_reserve *reserve, uint32_t size, uint32_t n)
{
	void **buf;

	size = (size + 63) & ~63u;
	reserve->mem = tq_mem_alloc(net, (size_t)size * n, &reserve->reg);
	if (!reserve->mem)
		return -ENOMEM;
	while (n-- > 0) {
		buf = (void **)((char *)reserve->mem + (size_t)size * n);
		*buf = reserve->free;
		reserve->free = buf;
	}
	return 0;
}

static void reserve_close(struct tq_net *net, struct tq_reserve *reserve)
{
	if (reserve->mem)
		tq_mem_free(net, reserve->mem);
}

static bool reserve_get(struct tq_net *net, struct tq_reserve *reserve, uint64_t len,
			struct tq_sg *sg)
{
	if (!reserve->free)
		return false;
	*sg = (struct tq_sg){.addr = reserve->free, .len = len, .reg = &reserve->reg};
	reserve->free = *(void **)sg->addr;
	net->scq.starved += !reserve->free;
	return true;
}

static void reserve_put(struct tq_net *net, struct tq_reserve *reserve, const struct tq_sg *sg)
{
	net->scq.starved -= !reserve->free;
	*(void **)sg->addr = reserve->free;
	reserve->free = sg->addr;
}

static int reserves_open(struct tq_net *net)
{
	struct tq_copies *copies = net->copies;
	int error = 0;

	if (net->limits.max_inline < TQ_MSG_MAX)
		error = reserve_open(net, &copies->msgs, TQ_MSG_MAX, MSGS);
	if (!error)
		error = reserve_open(net, &copies->pieces, tq_copy_piece_max(net), PIECES);
	return error;
}

bool tq_copy_get_piece(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	tq_assert_held(net->lock);
	return len <= tq_copy_piece_max(net) && reserve_get(net, &net->copies->pieces, len, sg);
}

bool tq_copy_has_piece(const struct tq_net *net)
{
	return net->copies->pieces.free;
}

bool tq_copy_get_msg(struct tq_net *net, uint32_t len, struct tq_sg *sg)
{
	tq_assert_held(net->lock);
	return reserve_get(net, &net->copies->msgs, len, sg);
}

/* ---- both ---- */

void tq_copy_put(struct tq_net *net, struct tq_sg *sg)
{
	struct tq_copies *copies = net->copies;

	tq_assert_held(net->lock);
	if (sg->reg == &copies->msgs.reg)
		reserve_put(net, &copies->msgs, sg);
	else if (sg->reg == &copies->pieces.reg)
		reserve_put(net, &copies->pieces, sg);
	else
		pool_put(net, sg);
	sg->reg = NULL;
}

uint64_t tq_copy_bytes(const struct tq_net *net, const struct tq_sg *sg)
{
	const struct tq_copies *copies = net->copies;

	if (sg->reg == &copies->msgs.reg || sg->reg == &copies->pieces.reg)
		return 0;
	return buffer_bytes(((const struct tq_slab *)sg->reg)->size);
}

bool tq_copy_is_wanted_back(const struct tq_net *net, const struct tq_sg *sg)
{
	uint64_t bytes = tq_copy_bytes(net, sg);

	return !bytes || net->copies_sent + bytes > (uint64_t)net->params->copy_pool / 4;
}

int tq_copies_open(struct tq_net *net)
{
	const char *what = "Memory for copies of short messages";
	int error;

	net->copies = calloc(1, sizeof(*net->copies));
	if (!net->copies)
		return -ENOMEM;
	error = pool_open(net);
	if (!error) {
		what = "The send buffers of control messages";
		error = reserves_open(net);
	}
	if (error) {
		tq_log(net->job, TQ_LOG_ERROR, "%s can't be registered: %s%s.", what,
		       strerror(-error), tq_limit_hint(error));
		tq_copies_close(net);
		return error;
	}
	net->mem->free_idle = free_idle;
	return 0;
}

void tq_copies_close(struct tq_net *net)
{
	net->mem->free_idle = NULL;
	reserve_close(net, &net->copies->pieces);
	reserve_close(net, &net->copies->msgs);
	pool_close(net);
	free(net->copies);
	net->copies = NULL;
}
