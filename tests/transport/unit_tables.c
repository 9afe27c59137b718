/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash tables stay fast with keys as they come in life. uthash stops growing a table for good
 * if the hash function fills few of its buckets.
 */
#include <endian.h>
#include <stdlib.h>

#include <tupleq/look_up.h>

#include "net/peers/link.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"
#include "proto/common/tx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/tx_tuple_table.h"
#include "unit.h"

#define MANY    100000u
#define LONGEST 24u /* items in a bucket; random hashes give 9 to 15 */

/* Returns true if the table has grown as it should. */
static bool spreads(const UT_hash_table *table, const char *what, unsigned shift)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < table->num_buckets; i++)
		longest = table->buckets[i].count > longest ? table->buckets[i].count : longest;
	if (table->num_items == MANY && !table->noexpand && longest <= LONGEST)
		return true;
	printf("# %s, shifted by %u: %u items in %u buckets, %u in one; %s\n", what, shift,
	       table->num_items, table->num_buckets, longest,
	       table->noexpand ? "grows no more" : "grows");
	return false;
}

/* Returns true unless the table has stopped to grow, after which each item takes longer than the
 * one before. */
static bool grows(const UT_hash_table *table)
{
	return !table->noexpand;
}

/* ---- the protocol's tables ---- */

/* Ids of communicators are consecutive; with fault tolerance they may be so in their upper half. */
static bool contexts(unsigned shift)
{
	struct tq_ctx **ctx = malloc(MANY * sizeof(struct tq_ctx *));
	bool ok = ctx, more = ok;
	uint32_t n;

	unit_start(NULL, NULL);
	tq_core_ctx_remove(unit.ctx);
	unit_poll();
	for (n = 0; more && n < MANY; n++) {
		ctx[n] = unit_context(n << shift | n >> (32 - shift) % 32);
		more = grows(unit.core.contexts->hh.tbl);
	}
	ok = ok && spreads(unit.core.contexts->hh.tbl, "contexts", shift);
	for (uint32_t i = 0; i < n; i++)
		ok &= tq_ctx_find(&unit.core, ctx[i]->id) == ctx[i];
	for (uint32_t i = 1; i < n; i++)
		tq_core_ctx_remove(ctx[i]);
	unit.ctx = n ? ctx[0] : unit_context(UNIT_CTX);
	unit_poll();
	free(ctx);
	return unit_stop() && ok;
}

static void start_with_records(void)
{
	unit_start("promote_after", "0");
	unit_set("tuple_records", "1048576");
}

/* Match bits may differ in any of their 64 bits. */
static bool tuples(unsigned shift)
{
	struct tq_pair *pair;
	bool ok, more = true;

	start_with_records();
	pair = tq_pair_get(unit.ctx, 0);
	for (uint64_t i = 0; more && i < MANY; i++)
		more = tq_tx_tuple_make(pair, i << shift) && tq_rx_tuple_get(pair, i << shift) &&
		       grows(pair->tx_tuples->hh.tbl) && grows(pair->rx_tuples->hh.tbl);
	ok = spreads(pair->tx_tuples->hh.tbl, "sender's tuples", shift) &&
	     spreads(pair->rx_tuples->hh.tbl, "receiver's tuples", shift);
	return unit_stop() && ok;
}

static bool unexpected_tags(unsigned shift)
{
	struct tq_msg_eager msg = {
		.hdr = tq_msg_hdr(TQ_MSG_EAGER, 0),
		.env = {.ctx = tq_put32(UNIT_CTX)},
	};
	bool ok, more = true;

	start_with_records();
	for (uint32_t i = 0; more && i < MANY; i++) {
		msg.env.tag = tq_put64(i << shift);
		msg.env.cseq = tq_put32(i);
		unit_comes(&msg, sizeof(msg));
		more = unit.ctx->unexpected_tags && grows(unit.ctx->unexpected_tags->hh.tbl);
	}
	ok = unit.ctx->unexpected_tags &&
	     spreads(unit.ctx->unexpected_tags->hh.tbl, "unexpected tags", shift);
	return unit_stop() && ok;
}

/* A node is named by the address of an object. */
static bool idle_lanes(unsigned shift)
{
	struct tq_peer *peers = calloc(MANY, sizeof(*peers));
	bool ok = peers, more = ok;
	uint32_t n;

	unit_start(NULL, NULL);
	tq_core_peer_fini(&unit.core, &unit.peer);
	for (n = 0; more && n < MANY; n++)
		more = !tq_core_peer_init(
			       &unit.core, &peers[n], NULL,
			       (const void *)(0x7f1200000010 + ((uintptr_t)n << shift))) &&
		       grows(unit.core.idle_lanes->hh.tbl);
	ok = ok && spreads(unit.core.idle_lanes->hh.tbl, "nodes with idle lanes", shift);
	for (uint32_t i = 0; i < n; i++)
		tq_core_peer_fini(&unit.core, &peers[i]);
	free(peers);
	if (tq_core_peer_init(&unit.core, &unit.peer, NULL, NULL))
		ok = false;
	return unit_stop() && ok;
}

/* ---- keys of the network's tables ---- */

struct item {
	union {
		uint64_t number; /* a nonce, or the id of a request */
		struct tq_locator locator;
		struct {
			uint64_t nonce, txid;
		} target;
		struct tq_node_key node;
	} key;
	UT_hash_handle hh;
};

typedef unsigned set_key(struct item *item, uint32_t i, unsigned shift);

static unsigned set_number(struct item *item, uint32_t i, unsigned shift)
{
	item->key.number = (uint64_t)i << shift;
	return sizeof(item->key.number);
}

/* Each LID has some processes, whose queue pairs' numbers are not far apart. */
static unsigned set_locator(struct item *item, uint32_t i, unsigned shift)
{
	item->key.locator = (struct tq_locator){.port = i / 64, .number = (i % 64) << shift};
	return sizeof(item->key.locator);
}

static unsigned set_target(struct item *item, uint32_t i, unsigned shift)
{
	item->key.target.nonce = 0x0123456789abcdef + ((uint64_t)(i % 64) << shift);
	item->key.target.txid = i / 64;
	return sizeof(item->key.target);
}

/* The GUIDs of adapters that were made one after the other; a domain is the same for all. */
static unsigned set_node(struct item *item, uint32_t i, unsigned shift)
{
	item->key.node = (struct tq_node_key){.domain = 7};
	item->key.node.gid.global.subnet_prefix = htobe64(0xfe80000000000000);
	item->key.node.gid.global.interface_id =
		htobe64(0x0002c90300a00000 + ((uint64_t)i << shift));
	return sizeof(item->key.node);
}

static bool keys(const char *what, set_key *set, unsigned shift)
{
	struct item *all = calloc(MANY, sizeof(*all)), *table = NULL;
	bool ok = all, more = ok;

	for (uint32_t i = 0; more && i < MANY; i++) {
		unsigned len = set(&all[i], i, shift);

		HASH_ADD(hh, table, key, len, &all[i]);
		more = grows(table->hh.tbl);
	}
	ok = ok && spreads(table->hh.tbl, what, shift);
	HASH_CLEAR(hh, table);
	free(all);
	return ok;
}

int main(void)
{
	static const unsigned shifts[] = {0, 1, 4, 6, 12, 15, 16, 20, 24, 32, 40, 47};
	bool ok[7] = {true, true, true, true, true, true, true};

	for (unsigned i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		unsigned shift = shifts[i];

		ok[0] &= shift > 16 || contexts(shift);
		ok[1] &= tuples(shift);
		ok[2] &= shift > 12 || unexpected_tags(shift);
		ok[3] &= shift < 4 || shift > 12 || idle_lanes(shift);
		ok[4] &= keys("links or requests", set_number, shift);
		ok[5] &= keys("targets", set_target, shift) && keys("nodes", set_node, shift);
		ok[6] &= shift > 20 || keys("look-ups", set_locator, shift);
	}
	unit_check("tables", "contexts", ok[0]);
	unit_check("tables", "tuples", ok[1]);
	unit_check("tables", "unexpected tags", ok[2]);
	unit_check("tables", "idle lanes", ok[3]);
	unit_check("tables", "links and requests", ok[4]);
	unit_check("tables", "targets and nodes", ok[5]);
	unit_check("tables", "look-ups", ok[6]);
	return unit_status();
}
