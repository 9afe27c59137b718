/* SPDX-License-Identifier: BSD-3-Clause */
/* What is different on Ethernet: test_roce, under "softhca run --link-layer ethernet". */
#include <errno.h>
#include <string.h>

#include "many.h"
#include "net/address.h"

static const int both[] = {0, 1};

/* -errno of the peer whose address A's is, with another GID. */
static int add_with(const union ibv_gid *gid)
{
	struct tq_address a;
	struct tq_peer *peer;
	size_t len;

	memcpy(&a, tq_address(many_eps[1], &len), sizeof(a));
	many_must(len == sizeof(a), "an address has %d bytes", (int)len);
	memcpy(a.gid, gid->raw, sizeof(a.gid));
	return tq_peer_add(many_eps[0], &a, sizeof(a), "somebody", &peer);
}

/* By default it is an IPv4 address. */
static void addresses(void)
{
	static const char *const params[] = {NULL};
	union ibv_gid gid;

	many_open(2, true, params);
	gid = many_eps[1]->net.dev.gid;
	many_must(gid.raw[11] == 0xff && gid.raw[12] == 10, "the GID is no IPv4 address");
	gid.raw[15] ^= 0x80;
	many_must(add_with(&gid) == -ETIMEDOUT, "a GID that nobody has: %d", add_with(&gid));
	many_must(!ibv_query_gid(many_eps[1]->net.dev.verbs, 1, 1, &gid), "no GID 1");
	many_must(add_with(&gid) == -ENETUNREACH, "an IPv6 address: %d", add_with(&gid));
	many_know_all();
}

/* Short, promoted and long messages by the paths that GID makes. */
static void passes_by(const char *gid_index)
{
	const char *const params[] = {gid_index, "promote_after=0", NULL};
	static char from[1 << 17], to[1 << 17];
	struct many_op sent = {0}, got = {0};
	struct tq_buf buf = {.addr = from, .len = sizeof(from)};
	struct tq_ctx *ctx[2];

	many_open(2, true, params);
	many_know_all();
	many_context(1, 2, both, ctx);
	for (int i = 0; i < 10; i++) {
		many_pass(ctx[0], ctx[1], 0, 1);
		many_pass(ctx[1], ctx[0], 1, 0);
	}
	memset(from, 'x', sizeof(from));
	many_must(tq_send(ctx[0], 1, MANY_TAG + 1, &buf, 0, &sent, &sent.req) == 0,
		  "a long message has ended at once");
	buf.addr = to;
	many_must(tq_recv(ctx[1], 0, MANY_TAG + 1, &buf, &got, &got.req, &got.status) == 0,
		  "a long message is here at once");
	many_must(many_comes(&got) && many_comes(&sent) && !memcmp(from, to, sizeof(from)),
		  "a long message didn't come");
	many_must(many_counter(1, "recv_direct") > 0, "no message was placed by the adapter");
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

static const struct many_case cases[] = {
	{"addresses", addresses},       {"RoCE v1, link-local", by_v1},
	{"RoCE v2, link-local", by_v2}, {"RoCE v1, IPv4", by_ipv4_v1},
	{"RoCE v2, IPv4", by_ipv4_v2},
};

int main(int argc, char **argv)
{
	return many_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
