/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records that a sender keeps of its tags. A tag that is used once gets none. The record of
 * another tag counts messages, so that the tuple requests a queue after promote_after of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/ctxs.h"
#include "proto/msg.h"
#include "proto/peers.h"
#include "proto/req.h"
#include "proto/send.h"
#include "proto/tx_objects.h"
#include "unit.h"

static bool sent(int32_t tag)
{
	return unit_send(tag, 8) == 1;
}

/* Announces a message, which the peer never receives. */
static bool sent_long(int32_t tag)
{
	return unit_send(tag, 8192) == 0;
}

/* Sends a message, and returns true if that requested a queue. */
static bool asked(int32_t tag)
{
	uint32_t n = unit.asks.n;

	return sent(tag) && unit.asks.n > n;
}

static bool sent_without_asking(int32_t tag)
{
	uint32_t n = unit.asks.n;

	return sent(tag) && unit.asks.n == n;
}

/* ---- tags ---- */

static bool used_once(void)
{
	bool ok = true;

	unit_start(NULL, NULL);
	for (int32_t tag = 0; tag < 30000; tag++)
		ok &= sent_without_asking(tag);
	/* A few have a record all the same. */
	ok &= unit.core.ntx_tuples < 3000;
	return unit_stop() && ok;
}

/* Uses tags that are equal in their lower or upper bits. */
static bool used_twice(unsigned shift)
{
	const int32_t n = 100;
	bool ok = true;

	unit_start(NULL, NULL);
	for (int32_t i = 0; i < n; i++)
		ok &= sent((int32_t)((uint32_t)i << shift));
	ok &= unit.core.ntx_tuples < (uint32_t)n / 4;
	for (int32_t i = 0; i < n; i++)
		ok &= sent((int32_t)((uint32_t)i << shift));
	ok &= unit.core.ntx_tuples > (uint32_t)n / 10 * 9 && unit.core.ntx_tuples <= (uint32_t)n;
	return unit_stop() && ok;
}

/* Checks that each tag soon has a record, however many tags take turns. */
static bool used_in_turn(void)
{
	const int32_t n = 3000;
	bool ok = true;

	unit_start(NULL, NULL);
	for (int32_t i = 0; i < 150 * n; i++)
		ok &= sent(i % n);
	ok &= unit.core.ntx_tuples == (uint32_t)n;
	return unit_stop() && ok;
}

/* Checks that a failed send is not counted. */
static bool not_sent(void)
{
	bool ok = true;

	unit_start(NULL, NULL);
	unit.peer.failed = -EIO;
	for (int i = 0; i < 8; i++)
		ok &= !sent(9);
	unit.peer.failed = 0;
	ok &= sent_without_asking(9) && unit.core.ntx_tuples <= 1;
	return unit_stop() && ok;
}

/* Checks that a long message counts as many, if the queue went back because it made short messages
 * wait. */
static bool long_counts(void)
{
	bool ok = true;

	unit_start(NULL, NULL);
	ok &= sent(7) && sent(7);
	unit.core.tx_tuple_lru->long_counts = true;
	unit.core.tx_tuple_lru->ask_at = 1000;
	unit.core.tx_tuple_lru->sent = 0;
	ok &= sent(7) && unit.core.tx_tuple_lru->sent == 1;
	ok &= sent_long(7) && unit.core.tx_tuple_lru->sent == 33;
	tq_core_on_peer_failed(&unit.core, &unit.peer);
	tq_core_release(tq_core_ended(&unit.core));
	unit.peer.failed = 0;
	return unit_stop() && ok;
}

static bool asks_after(const char *messages)
{
	bool ok = true;

	unit_start("promote_after", messages);
	for (long i = atol(messages); i > 0; i--)
		ok &= sent_without_asking(7);
	ok &= asked(7);
	return unit_stop() && ok;
}

int main(void)
{
	unit_check("tags", "used once", used_once());
	unit_check("tags", "used twice", used_twice(0));
	unit_check("tags", "used twice, the lower bits are the same", used_twice(16));
	unit_check("tags", "used in turn", used_in_turn());
	unit_check("tags", "not sent", not_sent());
	unit_check("tags", "long messages count for more", long_counts());
	unit_check("tags", "a queue is asked for by the first message", asks_after("0"));
	unit_check("tags", "a queue is asked for by the second message", asks_after("1"));
	unit_check("tags", "a queue is asked for by the fifth message", asks_after("4"));
	return unit_status();
}
