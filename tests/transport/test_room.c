/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_room.c - the registrations of a cache that nothing uses make room for tq_mr_expose(), and
 * those in use don't. Under "softhca run --max-mr" or "--memlock".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tupleq/tupleq.h>

#define PIECE   ((size_t)64 << 10)
#define ENTRIES 1024

static struct tq_ep *ep;
static int failed;

/* A cache that keeps a registration for each look-up. */
static struct {
	struct tq_mr *mr[ENTRIES];
	unsigned n, in_use; /* the first in_use are */
	unsigned asked;
} cache;

static void check(bool good, const char *name)
{
	failed += !good;
	printf("%sok %s\n", good ? "" : "not ", name);
}

static struct tq_mr *get(void *arg, void *addr, size_t len, bool write, void **cookie)
{
	(void)arg;
	*cookie = NULL;
	if (cache.n == ENTRIES || tq_mr_register(ep, addr, len, write, &cache.mr[cache.n]))
		return NULL;
	return cache.mr[cache.n++];
}

static void put(void *arg, void *cookie)
{
	(void)arg;
	(void)cookie;
}

static bool make_room(void *arg)
{
	(void)arg;
	cache.asked++;
	if (cache.n == cache.in_use)
		return false;
	tq_mr_deregister(cache.mr[--cache.n]);
	return true;
}

static void log_text(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "# %s\n", text);
}

static void complete(void *user, const struct tq_status *status)
{
	(void)user;
	(void)status;
}

/* Fills the cache until nothing more can be registered. */
static void fill(char *mem)
{
	struct tq_key key;

	while (!tq_key_get(ep, mem, PIECE, true, &key))
		tq_key_put(ep, &key);
}

int main(void)
{
	static const struct tq_mr_cache functions = {
		.get = get, .put = put, .make_room = make_room};
	const struct tq_job job = {
		.key = 7, .name = "a test", .log = log_text, .complete = complete};
	struct tq_params *params = tq_params_new();
	char *mem = calloc(2, PIECE);
	struct tq_mr *mr = NULL;
	unsigned n;

	if (!mem || !params || tq_open(params, &job, &functions, &ep)) {
		check(false, "an endpoint");
		return 1;
	}
	tq_params_free(params);
	fill(mem);
	n = cache.n;
	check(n > 1 && n < ENTRIES && !cache.asked, "the cache is full");
	check(tq_mr_register(ep, mem, PIECE, true, &mr) == -ENOMEM && !cache.asked,
	      "a cache's own registration doesn't ask it");
	check(!tq_mr_expose(ep, mem + PIECE, PIECE, TQ_ACCESS_READ, &mr) && cache.n < n,
	      "idle registrations make room");
	if (mr)
		tq_mr_deregister(mr);
	fill(mem);
	cache.in_use = n = cache.n;
	cache.asked = 0;
	check(tq_mr_expose(ep, mem + PIECE, PIECE, TQ_ACCESS_READ, &mr) == -ENOMEM &&
		      cache.asked == 1 && cache.n == n,
	      "registrations in use stay");
	while (cache.n)
		tq_mr_deregister(cache.mr[--cache.n]);
	tq_close(ep);
	free(mem);
	return failed != 0;
}
