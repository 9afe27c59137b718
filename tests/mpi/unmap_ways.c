/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts "ways" and "many": memory is given back while operations on the rest are pending. */
#define _GNU_SOURCE
#include "unmap.h"

#include <sys/mman.h>

/* ---- "ways": new memory replaces a part while operations are pending ---- */

/* A letter for each unit: x is given back, b begins with the buffer of a pending operation. */
static const char *const layouts[] = {
	"xxxxb...", "...bxxxx", "b.xxxx.b", "xxxbxxxx", ".xb.xb.b", "xbbbbxxx", "bxbxbxbx",
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

struct part {
	unsigned char *at;
	size_t bytes;
	struct t_msg message;
};

/* Returns the length of the run of x that begins at unit i, which one call gives back; 1 if there
 * is none. */
static size_t run_of(const char *layout, size_t i)
{
	size_t n = 1;

	while (layout[i] == 'x' && layout[i + n] == 'x')
		n++;
	return n;
}

/* Transfers all parts but the buffers in use. Parts that were given back are mapped anew before. */
static void use_rest(const struct unmap_way *way, const char *layout, unsigned char *map,
		     size_t unit, struct part *parts)
{
	struct unmap_made made;
	size_t n;

	for (size_t i = 0; layout[i]; i += n) {
		struct part *part = &parts[i];

		n = run_of(layout, i);
		if (layout[i] == 'b')
			continue;
		part->at = map + i * unit;
		part->bytes = n * unit;
		if (layout[i] == 'x' && !way->stays_mapped)
			part->at = unmap_renew(part->at, part->bytes);
		made = unmap_made_until_now();
		part->message = unmap_exchange(&unmap_all, part->at, part->bytes);
		if (t_rank == OWNER && layout[i] == 'x' && part->bytes >= unmap_large &&
		    part->at != unmap_spare)
			unmap_must_have_registered(made);
	}
}

static void give_parts(const struct unmap_memory *memory, const struct unmap_way *way,
		       const char *layout, size_t unit, size_t bytes, bool send)
{
	const size_t size = strlen(layout) * unit;
	unsigned char *map = t_rank == OWNER ? memory->map(size) : unmap_mirror;
	struct unmap_pending pending = {.send = send};
	struct part parts[UNITS] = {{0}};

	unmap_exchange(&unmap_all, map, size);
	for (size_t i = 0; layout[i]; i++)
		if (layout[i] == 'b')
			unmap_start(&unmap_all, &pending, map + i * unit, bytes);
	for (size_t i = 0; layout[i]; i += run_of(layout, i))
		if (layout[i] == 'x')
			unmap_give(way, map, map + i * unit, run_of(layout, i) * unit);
	use_rest(way, layout, map, unit, parts);
	unmap_finish(&unmap_all, &pending);
	for (size_t i = 0; i < UNITS && t_rank == OWNER; i++)
		if (parts[i].at && parts[i].at != unmap_spare)
			t_verify(parts[i].at, parts[i].bytes, parts[i].message);
	if (t_rank == OWNER)
		munmap(map, size);
}

/* Returns how much of the owner's memory is registered. The transfer in it deregisters memory that
 * was given back. Adds to *copied what the transfer itself couldn't register, where memory to lock
 * is scarce. */
static long long registered(long long *copied)
{
	const size_t bytes = 2 * unmap_large;
	const struct unmap_made before = unmap_made_until_now();
	struct unmap_made now;

	unmap_exchange(&unmap_all, unmap_spare, bytes);
	now = unmap_made_until_now();
	if (now.failures > before.failures || now.copies > before.copies)
		*copied += (long long)bytes;
	return t_counter("pml_tupleq_registered_bytes");
}

static void check_way(const struct unmap_memory *memory, const struct unmap_way *way)
{
	long long before, after, copied = 0, ignored = 0;

	t_begin("unmap: %s, %s", memory->name, way->name);
	before = registered(&copied);
	for (int send = 0; send < 2; send++) {
		if (memory->kind == POOL) {
			give_parts(memory, way, "xxb.", UNMAP_HUGE_PAGE, unmap_page, send);
			give_parts(memory, way, ".bxx", UNMAP_HUGE_PAGE, UNMAP_HUGE_PAGE, send);
			continue;
		}
		give_parts(memory, way, "xb", unmap_page, unmap_page, send);
		give_parts(memory, way, "bx", unmap_page, unmap_page, send);
		for (int i = 0; i < LAYOUTS; i++) {
			const size_t unit = memory->unit * unmap_page;

			/* The first memory is tried with all layouts, the others with a part of
			 * them, by turns. */
			if (memory != unmap_memories && (i + (way - unmap_ways)) % 3)
				continue;
			give_parts(memory, way, layouts[i], unmap_page, unmap_page, send);
			/* By rendezvous. A short message waits beside long ones, or a long one
			 * waits. */
			if (i < 2 || i % 2 == send)
				give_parts(memory, way, layouts[i], unit, i % 3 ? unmap_page : unit,
					   send);
		}
	}
	after = registered(&ignored);
	t_true(t_rank != OWNER || after <= before + copied, "%lld bytes are registered, not %lld",
	       after, before + copied);
	t_end();
}

static bool is_available(const struct unmap_memory *memory)
{
	int available = 1;
	void *p;

	if (memory->kind == POOL && t_rank == OWNER) {
		p = unmap_try_huge(unmap_most);
		available = p != MAP_FAILED;
		if (available)
			munmap(p, unmap_most);
	}
	MPI_Bcast(&available, 1, MPI_INT, OWNER, MPI_COMM_WORLD);
	if (!available)
		t_skip("unmap: huge pages",
		       "the system keeps too few (/proc/sys/vm/nr_hugepages; %d of 2 MiB)",
		       UNMAP_HUGE_UNITS);
	return available;
}

void unmap_check_ways(void)
{
	for (size_t m = 0; unmap_memories[m].name; m++) {
		if (!is_available(&unmap_memories[m]))
			continue;
		for (size_t w = 0; unmap_ways[w].name; w++)
			if (unmap_ways[w].kinds & unmap_memories[m].kind)
				check_way(&unmap_memories[m], &unmap_ways[w]);
	}
}

/* ---- "many": more pieces are given back at a time than any list holds ---- */

void unmap_check_many(void)
{
	enum { PIECES = 300 };
	const size_t size = 2 * PIECES * unmap_page;
	unsigned char *map = t_rank == OWNER ? unmap_map_anonymous(size) : unmap_mirror;
	unsigned char *other = t_rank == OWNER ? unmap_map_anonymous(size) : unmap_mirror, *at;
	struct unmap_pending pending = {0};

	t_begin("unmap: many pieces");
	for (int round = 0; round < 4; round++) {
		unmap_exchange(&unmap_all, map, size);
		unmap_exchange(&unmap_all, other, size);
		pending = (struct unmap_pending){.send = round % 2};
		unmap_start(&unmap_all, &pending, map, unmap_page);
		unmap_start(&unmap_all, &pending, map + size - 2 * unmap_page, unmap_page);
		for (int i = 0; i < PIECES; i++) {
			unmap_give(&unmap_ways[0], map, map + (size_t)(2 * i + 1) * unmap_page,
				   unmap_page);
			/* Memory that no operation uses is given back as well, in another order. */
			unmap_give(&unmap_ways[0], other,
				   other + (size_t)(2 * (i * 7 % PIECES)) * unmap_page, unmap_page);
		}
		for (int i = 0; i < PIECES; i++) {
			at = unmap_renew(map + (size_t)(2 * i + 1) * unmap_page, unmap_page);
			unmap_exchange(&unmap_all, at, unmap_page);
			at = unmap_renew(other + (size_t)(2 * i) * unmap_page, unmap_page);
			unmap_exchange(&unmap_all, at, unmap_page);
		}
		unmap_finish(&unmap_all, &pending);
	}
	t_end();
	if (t_rank == OWNER) {
		munmap(map, size);
		munmap(other, size);
	}
}
