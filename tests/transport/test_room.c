/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_room.c - test_room [mapping]: the registrations of a cache that nothing uses make room for
 * tq_mr_expose(), for another endpoint with its sink (a null MR, or a mapping), and for the control
 * buffers of late connections. Registrations in use stay. Under "softhca run --max-mr" or
 * "--memlock".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tupleq/tupleq.h>

#define PIECE   ((size_t)64 << 10)
#define ENTRIES 1024

static struct tq_ep *ep;
static const char *sink = "null MR"; /* in the text of the device */
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

static const struct tq_mr_cache functions = {.get = get, .put = put, .make_room = make_room};
static const struct tq_job job = {
	.key = 7, .name = "a test", .log = log_text, .complete = complete};

static uint64_t counter(const struct tq_ep *of, const char *name)
{
	unsigned i = 0;

	while (strcmp(tq_counter_desc(i)->name, name) != 0)
		i++;
	return tq_counter(of, i);
}

/* Opens an endpoint whose control buffers suffice for few peers. */
static struct tq_ep *open_endpoint(void)
{
	static const char *const set[][2] = {
		{"intranode", "hca"}, {"small_depth", "32"}, {"large_depth", "4"}, {"sink", "64K"}};
	struct tq_params *params = tq_params_new();
	struct tq_ep *opened;
	char why[200];
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(set) / sizeof(set[0]); i++)
		rc = tq_param_set(params, set[i][0], set[i][1], why, sizeof(why));
	if (!rc)
		rc = tq_open(params, &job, &functions, &opened);
	tq_params_free(params);
	return rc ? NULL : opened;
}

/* Exposes memory when the cache has taken all that there is. */
static void exposed(char *mem)
{
	struct tq_mr *mr = NULL;
	unsigned n;

	fill(mem);
	n = cache.n;
	check(n > 1 && n < ENTRIES && !cache.asked, "the cache is full");
	check(tq_mr_register(ep, mem, PIECE, true, &mr) == -ENOMEM && !cache.asked,
	      "a cache's own registration doesn't ask it");
	check(!tq_mr_expose(ep, mem + PIECE, PIECE, TQ_ACCESS_READ, &mr) && cache.n < n,
	      "idle registrations make room");
	check(counter(ep, "reg_evicted") == n - cache.n, "they are counted");
	if (mr)
		tq_mr_deregister(mr);
	fill(mem);
	cache.in_use = n = cache.n;
	cache.asked = 0;
	check(tq_mr_expose(ep, mem + PIECE, PIECE, TQ_ACCESS_READ, &mr) == -ENOMEM &&
		      cache.asked == 1 && cache.n == n,
	      "registrations in use stay");
	cache.in_use = 0;
}

/* Opens a second endpoint, whose memory and sink the cache has to make room for. */
static void opened(char *mem)
{
	struct tq_ep *second;
	unsigned n;

	fill(mem);
	n = cache.n;
	second = open_endpoint();
	check(second && cache.n < n, "an endpoint is opened when the cache is full");
	check(second && strstr(tq_device_text(second), sink), "the endpoint has its sink");
	if (second)
		tq_close(second);
}

/* Has the other endpoint connect to `ep`, and waits for it. */
static void connect_to(struct tq_ep *other)
{
	struct tq_peer *there, *here;
	const void *address;
	size_t len;

	address = tq_address(ep, &len);
	if (tq_peer_add(other, address, len, "full", &there))
		return;
	address = tq_address(other, &len);
	if (tq_peer_add(ep, address, len, "late", &here))
		return;
	tq_peer_connect(there);
	while (!counter(other, "connections") && !tq_peer_error(there)) {
		tq_progress(ep);
		tq_progress(other);
	}
}

/* Has others connect, for most of which there are no control buffers yet. */
static void connected(char *mem)
{
	enum { OTHERS = 4 };
	struct tq_ep *other[OTHERS];
	uint64_t buffers = counter(ep, "control_buffers");
	unsigned n, done = 0;

	for (int i = 0; i < OTHERS; i++) {
		other[i] = open_endpoint();
		if (!other[i]) {
			check(false, "others");
			return;
		}
	}
	fill(mem);
	n = cache.n;
	for (int i = 0; i < OTHERS; i++) {
		connect_to(other[i]);
		done += counter(other[i], "connections") == 1;
	}
	check(done == OTHERS, "others connect when the cache is full");
	check(counter(ep, "control_buffers") > buffers && cache.n < n,
	      "idle registrations make room for their control buffers");
	for (int i = 0; i < OTHERS; i++)
		tq_close(other[i]);
}

int main(int argc, char **argv)
{
	char *mem = calloc(2, PIECE);

	alarm(100);
	if (argc > 1 && !strcmp(argv[1], "mapping"))
		sink = "sink mapping";
	ep = open_endpoint();
	if (!mem || !ep) {
		check(false, "an endpoint");
		return 1;
	}
	exposed(mem);
	opened(mem);
	connected(mem);
	while (cache.n)
		tq_mr_deregister(cache.mr[--cache.n]);
	tq_close(ep);
	free(mem);
	return failed != 0;
}
