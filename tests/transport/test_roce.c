/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and paths on Ethernet, where they differ from InfiniBand.
 *
 * test_roce, under "softhca run --link-layer ethernet"
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "many.h"
#include "net/adapter/address.h"

/* Numbers of requested address handles, and of first requests that get no answer. */
static int handles, unanswered;

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	static struct ibv_ah *(*real)(struct ibv_pd *, struct ibv_ah_attr *);

	if (!real)
		real = (struct ibv_ah * (*)(struct ibv_pd *, struct ibv_ah_attr *))
			dlsym(RTLD_NEXT, "ibv_create_ah");
	if (handles++ < unanswered) {
		errno = ETIMEDOUT;
		return NULL;
	}
	return real(pd, attr);
}

/* Adds a peer with the address of endpoint 1, but with another GID. */
static int add_with(const union ibv_gid *gid, struct tq_peer **peer)
{
	struct tq_address a;
	size_t len;

	memcpy(&a, tq_address(many_eps[1], &len), sizeof(a));
	t_true(len == sizeof(a), "an address has %d bytes", (int)len);
	memcpy(a.gid, gid->raw, sizeof(a.gid));
	return tq_peer_add(many_eps[0], &a, sizeof(a), "somebody", peer);
}

/* Checks that the default GID is an IPv4 address, and that an IPv6 address is refused. */
static void addresses(void)
{
	static const char *const params[] = {NULL};
	union ibv_gid gid;
	struct tq_peer *peer;

	many_open(2, true, params);
	gid = many_eps[1]->net.dev.gid;
	t_true(gid.raw[11] == 0xff && gid.raw[12] == 10, "the GID is no IPv4 address");
	t_true(!ibv_query_gid(many_eps[1]->net.dev.verbs, 1, 1, &gid), "no GID 1");
	t_true(add_with(&gid, &peer) == -ENETUNREACH, "an IPv6 address: %d", add_with(&gid, &peer));
	many_know_all();
}

/* Connects to an address that no process has. */
static void unresolved(void)
{
	static const char *const params[] = {"connect_timeout=1", NULL};
	struct tq_peer *peers[2];
	struct many_op sent, got;
	struct tq_ctx *ctx;
	union ibv_gid gid;
	char data[64];

	many_open(2, true, params);
	gid = many_eps[1]->net.dev.gid;
	gid.raw[15] ^= 0x80;
	t_true(!add_with(&gid, &peers[1]), "it isn't taken");
	many_know(0, 0);
	peers[0] = many_peers[0][0];
	t_true(!tq_ctx_add(many_eps[0], 1, peers, 2, 0, 0, &ctx), "no context");
	many_recv(ctx, 1, MANY_TAG, data, &got);
	many_send(ctx, 1, MANY_TAG, "to nobody", TQ_SEND_SYNC, &sent);
	t_true(many_comes(&sent) && sent.status.error == -EIO && many_errors == 1,
	       "error %d, %d sentences", sent.status.error, many_errors);
}

/* Connects to an address whose owner answers late. One handle serves all processes of a node. */
static void resolved_late(void)
{
	static const char *const params[] = {NULL};
	struct tq_ctx *ctx[3];

	unanswered = 1;
	many_open(3, false, params);
	many_know_all();
	t_true(!handles, "an address was resolved before it was needed");
	many_context(1, 3, ctx);
	for (int i = 0; i < 3; i++)
		many_pass(ctx[i], ctx[(i + 1) % 3], i, (i + 1) % 3);
	t_true(handles == unanswered + 3 && !many_errors, "%d address handles", handles);
}

/* Passes short, direct and long messages on paths by this GID. */
static void passes_by(const char *gid_index)
{
	const char *const params[] = {gid_index, "promote_after=0", NULL};
	static char from[1 << 17], to[1 << 17];
	struct many_op sent = {0}, got = {0};
	struct tq_buf buf = {.addr = from, .len = sizeof(from)};
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	for (int i = 0; i < 10; i++) {
		many_pass(ctx[0], ctx[1], 0, 1);
		many_pass(ctx[1], ctx[0], 1, 0);
	}
	memset(from, 'x', sizeof(from));
	t_true(tq_send(ctx[0], 1, MANY_TAG + 1, &buf, 0, &sent, &sent.req) == 0,
	       "a long message has ended at once");
	buf.addr = to;
	t_true(tq_recv(ctx[1], 0, MANY_TAG + 1, &buf, &got, &got.req, &got.status) == 0,
	       "a long message is here at once");
	t_true(many_comes(&got) && many_comes(&sent) && !memcmp(from, to, sizeof(from)),
	       "a long message didn't come");
	t_true(many_counter(1, "recv_direct") > 0, "no message was placed by the adapter");
}

static void by_v1(void)
{
	passes_by("gid_index=0");
}

static void by_v2(void)
{
	passes_by("gid_index=1");
}

static void by_ipv4_v1(void)
{
	passes_by("gid_index=2");
}

static void by_ipv4_v2(void)
{
	passes_by("gid_index=3");
}

const struct many_case many_cases[] = {
	{"addresses", addresses},
	{"an address that nobody has", unresolved},
	{"an address that is resolved late", resolved_late},
	{"RoCE v1, link-local", by_v1},
	{"RoCE v2, link-local", by_v2},
	{"RoCE v1, IPv4", by_ipv4_v1},
	{"RoCE v2, IPv4", by_ipv4_v2},
	{0},
};
