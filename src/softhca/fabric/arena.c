/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c - a buddy allocator over the own arena. Only this process knows which blocks are free;
 * other processes get offsets.
 *
 * A free block of 64 KiB or more has no memory behind it (it is punched out), so that it is zero
 * when it is backed again. Smaller blocks keep their memory, and are cleared when they are handed
 * out.
 */
#define _GNU_SOURCE 1
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "say.h"

#define PAGE  4096ULL
#define PAGES (SHCA_ARENA / PAGE)
#define MAX_ORDER                                                                                \
	21          /* half of the arena: the whole can't be handed out, because page 0 never is \
		     */
#define BIG_ORDER 4 /* 64 KiB */
static_assert(PAGES == 2ULL << MAX_ORDER, "the largest block is half an arena");

/* Blocks are named by their first page; 0 means none. */
static struct {
	pthread_mutex_t lock;
	bool ready;
	uint32_t head[MAX_ORDER + 1];
	uint32_t next[PAGES], prev[PAGES];
	/* Order of the free block that begins at each page, plus 1. Aligned, so that it can be
	 * given back whole. */
	uint8_t order[PAGES] __attribute__((aligned(PAGE)));
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void push(uint32_t page, unsigned order)
{
	blocks.order[page] = (uint8_t)(order + 1);
	blocks.prev[page] = 0;
	blocks.next[page] = blocks.head[order];
	if (blocks.head[order])
		blocks.prev[blocks.head[order]] = page;
	blocks.head[order] = page;
}

static void unlink_block(uint32_t page)
{
	unsigned order = blocks.order[page] - 1u;

	if (blocks.prev[page])
		blocks.next[blocks.prev[page]] = blocks.next[page];
	else
		blocks.head[order] = blocks.next[page];
	if (blocks.next[page])
		blocks.prev[blocks.next[page]] = blocks.prev[page];
	blocks.order[page] = 0;
}

/* Makes all blocks but page 0 free: those that splitting the whole down to page 0 would leave. */
static void make_ready(void)
{
	unsigned order;

	for (order = 0; order <= MAX_ORDER; order++)
		push(1u << order, order);
	blocks.ready = true;
}

static int order_of(uint64_t len)
{
	uint64_t pages = (len + PAGE - 1) / PAGE;
	int order = 0;

	while (order <= MAX_ORDER && (1ULL << order) < pages)
		order++;
	return len && order <= MAX_ORDER ? order : -1;
}

/* Returns the first page of a free block of that order, which may be split off a larger one, or 0.
 */
static uint32_t take_block(unsigned order)
{
	unsigned have = order;
	uint32_t page;

	while (have <= MAX_ORDER && !blocks.head[have])
		have++;
	if (have > MAX_ORDER)
		return 0;
	page = blocks.head[have];
	unlink_block(page);
	while (have > order) {
		have--;
		push(page + (1u << have), have);
	}
	return page;
}

/* Frees a block and merges it with its free buddies. Returns the order of the result. */
static unsigned give_block(uint32_t page, unsigned order)
{
	while (order < MAX_ORDER) {
		uint32_t buddy = page ^ (1u << order);

		if (blocks.order[buddy] != order + 1)
			break;
		unlink_block(buddy);
		page &= ~(1u << order);
		order++;
	}
	push(page, order);
	return order;
}

static uint64_t round_page(uint64_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

/* Takes the memory behind `len` bytes away. If that fails in the caller's own arena, clears the
 * first `clear` bytes, which may not be zero. */
static void punch(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t len,
		  uint64_t clear)
{
	uint64_t at = fabric->hdr->arenas + proc * SHCA_ARENA + off;
	char *mem;

	/* The next owner relies on zeros. */
	if (!fallocate(fabric->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		       (off_t)len) ||
	    !clear)
		return;
	mem = shca_arena(fabric, proc, off, clear);
	if (mem)
		memset(mem, 0, clear);
}

static void account(struct shca_fabric *fabric, unsigned proc, int64_t bytes)
{
	atomic_fetch_add_explicit(&fabric->hdr->procs[proc].arena_used, (uint64_t)bytes,
				  memory_order_relaxed);
}

void shca_arena_count(struct shca_fabric *fabric, unsigned proc, uint64_t backed, uint64_t wanted)
{
	account(fabric, proc, (int64_t)(round_page(wanted) - round_page(backed)));
}

int shca_arena_back(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t backed,
		    uint64_t wanted)
{
	uint64_t from = backed & ~(PAGE - 1), len = round_page(wanted) - from;
	int rc =
		shca_fabric_back(fabric, fabric->hdr->arenas + proc * SHCA_ARENA + off + from, len);
	char *mem = rc ? NULL : shca_arena(fabric, proc, off + from, len);

	if (!mem)
		return -ENOMEM;
	return shca_fabric_touch(mem, len);
}

/* Reports, once, that addresses rather than memory are used up. */
static void say_full(uint64_t len)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		shca_say("The queues of this process take more than %llu GiB of addresses "
			 "together, with another of %llu MiB: make them smaller.",
			 SHCA_ARENA >> 30, (unsigned long long)len >> 20);
}

uint64_t shca_arena_reserve(struct shca_fabric *fabric, unsigned proc, uint64_t len,
			    uint64_t backed)
{
	int order = order_of(len);
	char *mem = NULL;
	uint32_t page;
	uint64_t off;

	if (order < 0) {
		if (len)
			say_full(len);
		return 0;
	}
	backed = round_page(backed);
	pthread_mutex_lock(&blocks.lock);
	if (!blocks.ready)
		make_ready();
	page = take_block((unsigned)order);
	off = page * PAGE;
	if (!page)
		say_full(len);
	else if (!shca_fabric_back(fabric, fabric->hdr->arenas + proc * SHCA_ARENA + off, backed))
		mem = shca_arena(fabric, proc, off, len);
	if (page && !mem) {
		if (order >= BIG_ORDER)
			punch(fabric, proc, off, backed, 0);
		give_block(page, (unsigned)order);
	}
	pthread_mutex_unlock(&blocks.lock);
	if (!mem)
		return 0;
	if (order < BIG_ORDER)
		memset(mem, 0, round_page(len));
	account(fabric, proc, (int64_t)backed);
	return off;
}

uint64_t shca_arena_alloc(struct shca_fabric *fabric, unsigned proc, uint64_t len)
{
	return shca_arena_reserve(fabric, proc, len, len);
}

void shca_arena_unreserve(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t len,
			  uint64_t backed)
{
	int order = order_of(len);
	uint64_t big = PAGE << BIG_ORDER;

	if (!off || order < 0)
		return;
	backed = round_page(backed);
	pthread_mutex_lock(&blocks.lock);
	if (order >= BIG_ORDER)
		punch(fabric, proc, off, round_page(len), backed);
	/* The last small piece of a large block makes all of it a large block again. */
	if (give_block((uint32_t)(off / PAGE), (unsigned)order) >= BIG_ORDER && order < BIG_ORDER)
		punch(fabric, proc, off & ~(big - 1), big, big);
	pthread_mutex_unlock(&blocks.lock);
	account(fabric, proc, -(int64_t)backed);
}

void shca_arena_free(struct shca_fabric *fabric, unsigned proc, uint64_t off, uint64_t len)
{
	shca_arena_unreserve(fabric, proc, off, len, len);
}

void shca_arena_reset(void)
{
	/* Also called in a forked child, where a thread that doesn't exist there may have held
	 * the lock. */
	pthread_mutex_init(&blocks.lock, NULL);
	if (blocks.ready) {
		memset(blocks.head, 0, sizeof(blocks.head));
		/* Nearly all of the arena was never touched; locked memory can't be given back. */
		if (madvise(blocks.order, sizeof(blocks.order), MADV_DONTNEED))
			memset(blocks.order, 0, sizeof(blocks.order));
	}
	blocks.ready = false;
}

void shca_arena_drop(struct shca_fabric *fabric, unsigned proc)
{
	punch(fabric, proc, 0, SHCA_ARENA, 0);
	atomic_store(&fabric->hdr->procs[proc].arena_used, 0);
}
