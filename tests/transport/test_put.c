/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tq_put(), and the registered memory that it writes to; looking up endpoints, peers and nodes.
 *
 * test_put [PARAMETER=VALUE...], under "softhca run --nodes 2"
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duo.h"
#include "net/adapter/address.h"

#define WORDS (TQ_PUT_MAX / sizeof(uint64_t))

/* Memory of this process to which the other process writes, and the address and key of the other
 * process's. */
struct window {
	uint64_t *mem;
	struct tq_mr *mr;
	uint64_t addr;
	uint32_t key;
};

#define PAGE 4096u

static void window_open(struct duo *duo, struct window *window, size_t size)
{
	int rc;

	window->mem = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
	t_true(window->mem, "no memory");
	memset(window->mem, 0, size);
	rc = tq_mr_register(duo->ep, window->mem, size, true, &window->mr);
	t_true(!rc, "register: %d", rc);
	duo_swap_memory(duo, window->mem, window->mr, &window->addr, &window->key);
}

/* Removes the window when the writes of both processes have arrived. */
static void window_close(struct duo *duo, struct window *window)
{
	tq_flush(duo->ep);
	duo_meet(duo);
	tq_mr_deregister(window->mr);
	free(window->mem);
}

static void put(struct duo *duo, int rank, const void *data, size_t len, uint64_t addr,
		uint32_t key)
{
	int rc = tq_put(duo->peers[rank], data, len, addr, key);

	t_true(!rc, "put: %d", rc);
}

static void await(struct duo *duo, const uint64_t *word, uint64_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		tq_progress(duo->ep);
}

static void there_and_back(struct duo *duo)
{
	struct window w;

	window_open(duo, &w, 4096);
	for (uint64_t i = 1; i <= 3000; i++) {
		if (duo->me)
			await(duo, w.mem, i);
		put(duo, !duo->me, &i, sizeof(i), w.addr, w.key);
		if (!duo->me)
			await(duo, w.mem, i);
	}
	window_close(duo, &w);
}

/* Registered memory is counted as long as it is registered. */
static void counted(struct duo *duo)
{
	uint64_t before = duo_counter(duo, "registered_bytes"), now;
	struct window w;

	window_open(duo, &w, 12345);
	now = duo_counter(duo, "registered_bytes");
	t_true(now == before + 12345, "%llu bytes registered, then %llu",
	       (unsigned long long)before, (unsigned long long)now);
	window_close(duo, &w);
	now = duo_counter(duo, "registered_bytes");
	t_true(now == before, "%llu bytes registered, and %llu are left",
	       (unsigned long long)before, (unsigned long long)now);
	/* A process that communicates has registered control buffers. */
	now = duo_counter(duo, "own_bytes");
	t_true(now >= 65536, "%llu bytes of the library's own", (unsigned long long)now);
}

/* Starts more writes at once than a queue takes. All of them arrive. */
static void many(struct duo *duo)
{
	enum { N = 3000 };
	uint64_t before = duo_counter(duo, "puts");
	struct window w;

	window_open(duo, &w, N * sizeof(uint64_t) + 4096);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t value = i ^ 0x5a5a;

		put(duo, !duo->me, &value, sizeof(value), w.addr + i * sizeof(value), w.key);
	}
	for (uint64_t i = 0; i < N; i++)
		await(duo, &w.mem[i], i ^ 0x5a5a);
	t_true(!tq_flush(duo->ep), "flush");
	t_true(duo_counter(duo, "puts") - before == N, "%llu puts",
	       (unsigned long long)(duo_counter(duo, "puts") - before));
	window_close(duo, &w);
}

/* Returns the next number of words to write: all small ones, fewer large ones, and the most. */
static size_t next_size(size_t n)
{
	size_t next = n < 40 ? n + 1 : n == 40 ? 100 : n * 2 - n % 7;

	return n < WORDS && next > WORDS ? WORDS : next;
}

static void sizes(struct duo *duo)
{
	static uint64_t data[WORDS + 1];
	struct window w;

	window_open(duo, &w, TQ_PUT_MAX + 4096);
	for (size_t n = 0; n <= WORDS; n = next_size(n)) {
		for (size_t i = 0; i < n; i++)
			data[i] = n << 32 | (i + 1);
		put(duo, !duo->me, data, n * sizeof(*data), w.addr, w.key);
		memset(data, 0xee, sizeof(data)); /* tq_put() has copied them */
		for (size_t i = 0; i < n; i++)
			await(duo, &w.mem[i], n << 32 | (i + 1));
		t_true(!w.mem[n], "written beyond the end");
		/* The next write is longer, and overwrites the words. */
		duo_meet(duo);
	}
	t_true(tq_put(duo->peers[!duo->me], data, TQ_PUT_MAX + 1, w.addr, w.key) == -EINVAL,
	       "too long");
	window_close(duo, &w);
}

static void to_itself(struct duo *duo)
{
	struct window w;

	window_open(duo, &w, 4096);
	for (uint64_t i = 1; i < 100; i++) {
		put(duo, duo->me, &i, sizeof(i), (uintptr_t)w.mem, tq_mr_key(w.mr));
		await(duo, w.mem, i);
	}
	window_close(duo, &w);
}

static void found(struct duo *duo)
{
	unsigned char address[2][256], garbage[256] = {1};
	struct tq_node_id node[2], again;
	struct duo_op s, r;
	size_t len;
	const void *own = tq_address(duo->ep, &len);

	t_true(len <= sizeof(address[0]), "an address of %zu bytes", len);
	t_true(tq_find((uint64_t)getppid()) == duo->ep, "the endpoint isn't found");
	t_true(!tq_find(0), "another job's endpoint is found");
	memcpy(address[duo->me], own, len);
	duo_recv(duo, !duo->me, 1, address[!duo->me], len, &r);
	duo_send(duo, !duo->me, 1, own, len, 0, &s);
	duo_wait(duo, &r);
	duo_wait(duo, &s);
	for (int i = 0; i < 2; i++) {
		t_true(tq_peer_find(duo->ep, address[i], len) == duo->peers[i], "peer %d", i);
		t_true(!tq_address_node(address[i], len, &node[i]), "node %d", i);
	}
	t_true(!memcmp(&node[0], &node[1], sizeof(node[0])) == (getenv("TEST_INTRANODE") != NULL),
	       "two nodes are one, or one is two");
	t_true(!tq_address_node(own, len, &again) && !memcmp(&node[duo->me], &again, sizeof(again)),
	       "one node is two");
	t_true(!tq_peer_find(duo->ep, garbage, len) && !tq_peer_find(duo->ep, own, len - 1) &&
		       tq_address_node(garbage, len, &again) == -EPROTO,
	       "garbage is an address");
	/* With another nonce, or another key of the UD QP, the address is that of no peer. */
	address[0][offsetof(struct tq_address, nonce)] ^= 1;
	t_true(!tq_peer_find(duo->ep, address[0], len), "a stranger is a peer");
	address[1][offsetof(struct tq_address, ud_qkey)] ^= 1;
	t_true(!tq_peer_find(duo->ep, address[1], len), "another address of a peer is the peer's");
}

/* A late write goes to memory that is still registered. */
static void abandoned(struct duo *duo)
{
	struct window w;
	uint64_t value = 7;

	window_open(duo, &w, 4096);
	tq_mr_abandon(duo->ep, w.mr);
	duo_meet(duo);
	put(duo, !duo->me, &value, sizeof(value), w.addr, w.key);
	await(duo, w.mem, value);
}

static void dead_peer(struct duo *duo)
{
	struct window w;
	uint64_t value = 1;
	int rc;

	window_open(duo, &w, 4096);
	put(duo, !duo->me, &value, sizeof(value), w.addr, w.key);
	await(duo, w.mem, value);
	duo_meet(duo);
	if (duo->me)
		duo_end();
	duo_gone(duo);
	do {
		rc = tq_put(duo->peers[1], &value, sizeof(value), w.addr, w.key);
		tq_progress(duo->ep);
	} while (!rc || rc == -EAGAIN);
	t_true(rc == -EIO, "put: %d", rc);
	t_true(tq_peer_error(duo->peers[1]) == -EIO, "no error of the peer");
	t_true(!tq_peer_error(duo->peers[0]), "an error of this process");
	duo_end();
}

/* The process has never sent anything to the peer. */
static void dead_peer_awaited(struct duo *duo)
{
	if (!duo->me) {
		tq_peer_connect(duo->peers[1]);
		while (!duo_counter(duo, "connections"))
			tq_progress(duo->ep);
	}
	duo_meet(duo);
	if (duo->me)
		duo_end();
	while (!tq_peer_error(duo->peers[1]))
		tq_progress(duo->ep);
	t_eq(tq_peer_error(duo->peers[1]), -EIO);
	duo_end();
}

/* The peer closes, so it writes nothing more. */
static void closed_peer(struct duo *duo)
{
	if (!duo->me) {
		tq_peer_connect(duo->peers[1]);
		while (!duo_counter(duo, "connections"))
			tq_progress(duo->ep);
	}
	duo_meet(duo);
	if (duo->me) {
		tq_ctx_remove(duo->ctx);
		tq_close(duo->ep);
		duo_end();
	}
	while (!tq_peer_error(duo->peers[1]))
		tq_progress(duo->ep);
	t_true(tq_peer_error(duo->peers[1]) == -ESHUTDOWN, "a peer that has closed has failed");
	duo_end();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		duo_param(argv[i]);
	duo_run("there and back", there_and_back);
	duo_run("counted", counted);
	duo_run("many", many);
	duo_run("sizes", sizes);
	duo_run("to itself", to_itself);
	duo_run("found", found);
	duo_run("abandoned", abandoned);
	duo_run("dead peer", dead_peer);
	duo_run("dead peer awaited", dead_peer_awaited);
	duo_run("closed peer", closed_peer);
	return duo_failed() != 0;
}
