/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records that a sender keeps of its tags. Short messages need none, unless their tuple has a
 * queue. The record of longer ones counts them, so that the tuple requests a queue after
 * promote_after of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/tx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/sender/send.h"
#include "unit.h"

static bool sent(int32_t tag)
{
	return unit_send(tag, 8) == 1;
}

/* Announces a message, which the peer never receives. */
static bool sent_long(int32_t tag)
{
	return unit_send(tag, UNIT_LONG) == 0;
}

/* Sends a message, and returns true if that requested a queue. */
static bool asked(int32_t tag)
{
	uint32_t n = unit.asks.n;

	return sent_long(tag) && unit.asks.n > n;
}

static bool sent_without_asking(int32_t tag)
{
	uint32_t n = unit.asks.n;

	return sent_long(tag) && unit.asks.n == n;
}

/* Fails the peer, so that all sends end. */
static void end_sends(void)
{
	struct tq_req *req, *next;

	tq_core_on_peer_failed(&unit.core, &unit.peer);
	for (req = tq_core_ended(&unit.core); req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
	unit.peer.failed = 0;
}

/* ---- tags ---- */

static bool only_short(void)
{
	bool ok = true;

	unit_start(NULL, NULL);
	for (int32_t tag = 0; tag < 30000; tag++)
		ok &= sent(tag % 10000);
	ok &= unit.core.ntx_tuples == 0 && unit.asks.n == 0;
	return unit_stop() && ok;
}

/* Uses tags that are equal in their lower or upper bits. */
static bool each_has_record(unsigned shift)
{
	const int32_t n = 100;
	bool ok = true;

	unit_start(NULL, NULL);
	for (int32_t i = 0; i < 2 * n; i++)
		ok &= sent_long((int32_t)((uint32_t)(i % n) << shift));
	ok &= unit.core.ntx_tuples == (uint32_t)n;
	end_sends();
	return unit_stop() && ok;
}

/* Checks that short messages don't count for the request. */
static bool short_between(void)
{
	bool ok = true;

	unit_start("promote_after", "1");
	ok &= sent_without_asking(7);
	for (int i = 0; i < 10; i++)
		ok &= sent(7);
	ok &= unit.asks.n == 0 && asked(7);
	end_sends();
	return unit_stop() && ok;
}

/* Checks that a failed send is not counted. */
static bool not_sent(void)
{
	bool ok = true;

	unit_start("promote_after", "1");
	unit.peer.failed = -EIO;
	for (int i = 0; i < 8; i++)
		ok &= !sent_long(9);
	unit.peer.failed = 0;
	ok &= sent_without_asking(9) && asked(9);
	end_sends();
	return unit_stop() && ok;
}

static bool asks_after(const char *messages)
{
	bool ok = true;

	unit_start("promote_after", messages);
	for (long i = atol(messages); i > 0; i--)
		ok &= sent_without_asking(7);
	ok &= asked(7);
	end_sends();
	return unit_stop() && ok;
}

/* Checks that a short message requests a queue in the paper's mode. */
static bool short_asks(void)
{
	bool ok;

	unit_start("promote_after", "0");
	ok = sent(7) && unit.asks.n == 1;
	return unit_stop() && ok;
}

int main(void)
{
	unit_check("tags", "short messages have no record", only_short());
	unit_check("tags", "each tag has a record", each_has_record(0));
	unit_check("tags", "each tag has a record, the lower bits are the same",
		   each_has_record(16));
	unit_check("tags", "short messages between", short_between());
	unit_check("tags", "not sent", not_sent());
	unit_check("tags", "a queue is asked for by a short message", short_asks());
	unit_check("tags", "a queue is asked for by the first message", asks_after("0"));
	unit_check("tags", "a queue is asked for by the second message", asks_after("1"));
	unit_check("tags", "a queue is asked for by the fifth message", asks_after("4"));
	return unit_status();
}
