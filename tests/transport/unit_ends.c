/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and messages that outlive their context or their peer, and the order in which they end.
 * Mistakes here are uses of freed memory, which a sanitizer finds.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/buf.h"
#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "proto/sender/send.h"
#include "unit.h"

enum { TAG = 7, BITS_CTX = 6, LENGTH = 8 };

/* Removes the peer, and makes another one, which unit_stop() removes. */
static void remove_peer(void)
{
	tq_core_peer_fini(&unit.core, &unit.peer);
	if (tq_core_peer_init(&unit.core, &unit.peer, NULL, NULL))
		abort();
}

/* ---- contexts with tags ---- */

static const char text[LENGTH] = "message";

static void eager_comes(void)
{
	struct {
		struct tq_msg_eager head;
		char data[LENGTH];
	} m = {.head = {.hdr = {.type = TQ_MSG_EAGER},
			.env = {.ctx = tq_put32(UNIT_CTX), .tag = tq_put64(TAG)}}};

	memcpy(m.data, text, LENGTH);
	unit_comes(&m, sizeof(m));
}

static void rts_comes(void)
{
	const struct tq_msg_rts m = {.hdr = {.type = TQ_MSG_RTS},
				     .env = {.ctx = tq_put32(UNIT_CTX), .tag = tq_put64(TAG)},
				     .length = tq_put64(100000)};

	unit_comes(&m, TQ_MSG_RTS_LEN(0));
}

/* Checks that a receive that has ended can be cancelled when its context is gone. */
static bool cancelled_late(void)
{
	struct tq_req *req;
	bool ok;

	unit_start(NULL, NULL);
	ok = !unit_recv(0, TAG, &req);
	tq_core_ctx_remove(unit.ctx);
	eager_comes();
	tq_core_poll(&unit.core);
	ok = ok && !unit.stats.contexts && !tq_core_cancel(req);
	unit_poll();
	unit.ctx = unit_context(UNIT_CTX);
	return unit_stop() && ok;
}

/* Receives a message that a matched probe has taken, and whose sender was removed meanwhile.
 * Returns the status's error, or 1 if something else is wrong. */
static int received_late(void (*comes)(void))
{
	char data[LENGTH] = "";
	const struct tq_buf buf = {.addr = data, .len = LENGTH};
	struct tq_status status;
	struct tq_msg *msg;
	struct tq_req *req;
	bool ok;

	unit_start(NULL, NULL);
	comes();
	ok = tq_core_mprobe(unit.ctx, 0, TAG, &status, &msg) == 1;
	remove_peer();
	ok = ok && tq_core_mrecv(msg, &buf, NULL, &req, &status) == 1;
	ok = ok && (status.error ||
		    (!memcmp(data, text, LENGTH) && status.length == LENGTH && status.tag == TAG));
	return unit_stop() && ok ? status.error : 1;
}

/* ---- contexts with match bits ---- */

static struct tq_net_limits two_pieces;
static struct tq_ctx *bits_ctx;
static int nkept; /* messages that no entry took */

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	(void)arg, (void)entry, (void)envelope, (void)take;
	return TQ_TAKE;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	(void)arg, (void)envelope, (void)take;
	nkept++;
	return TQ_KEEP;
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	(void)arg, (void)user, (void)arrival;
}

static const struct tq_match_ops match_ops = {match, unexpected, done};

static bool start_bits_with(uint32_t header_len)
{
	struct tq_peer *const peers[] = {&unit.peer};

	unit_start(NULL, NULL);
	two_pieces = unit_limits;
	two_pieces.max_sge = two_pieces.max_srq_sge = 2;
	unit.core.limits = &two_pieces;
	unit.registers = true;
	nkept = 0;
	return !tq_core_ctx_add_bits(&unit.core, BITS_CTX, peers, 1, 0, 0, header_len, &match_ops,
				     NULL, &bits_ctx);
}

static bool start_bits(void)
{
	return start_bits_with(0);
}

/* Appends an entry that may lie in a queue. Returns the number of messages that it took. */
static int append(void *user)
{
	const struct tq_want want = {.tag = TAG};
	const struct tq_buf none = {0};

	return tq_core_entry_append(bits_ctx, &want, &none, TQ_ENTRY_QUEUE, user, NULL);
}

static void bits_come(uint64_t bits, uint32_t number, bool asking)
{
	const struct tq_msg_eager m = {.hdr = {.type = TQ_MSG_EAGER},
				       .env = {.ctx = tq_put32(BITS_CTX),
					       .cseq = tq_put32(number),
					       .seq = tq_put32(number),
					       .ask = tq_put32(asking),
					       .mask_life = tq_put16(1),
					       .tag = tq_put64(bits)}};

	unit_comes(&m, sizeof(m));
}

/* Passes a message, after which its tuple has a queue. */
static bool get_queue(void)
{
	struct tq_msg_switch m = {.hdr = {.type = TQ_MSG_SWITCH}, .seq = tq_put32(1)};
	bool ok = !append(NULL);

	bits_come(TAG, 0, true);
	unit_poll();
	if (!ok || !unit.offers.n)
		return false;
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	unit_comes(&m, sizeof(m));
	return unit.stats.promotions == 1;
}

static void recalled_comes(uint32_t held, uint32_t delivered)
{
	const struct tq_msg_recalled m = {.hdr = {.type = TQ_MSG_RECALLED},
					  .rx_tuple = tq_put32(unit.offers.of[0]),
					  .held = tq_put32(held),
					  .delivered = tq_put32(delivered),
					  .next = tq_put32(2)};

	unit_comes(&m, sizeof(m));
}

/* Takes in NOTICE and HELD for a message that the peer holds, then RECALLED. */
static void hold(void)
{
	const struct tq_msg_notice late = {.hdr = {.type = TQ_MSG_NOTICE, .flags = TQ_NOTICE_LATE},
					   .rx_tuple = tq_put32(unit.offers.of[0]),
					   .seq = tq_put32(1)};
	const struct tq_msg_held held = {.hdr = {.type = TQ_MSG_HELD},
					 .rx_tuple = late.rx_tuple,
					 .seq = late.seq,
					 .cseq = late.seq,
					 .tag = tq_put64(TAG)};

	unit_comes(&late, sizeof(late));
	unit_comes(&held, TQ_MSG_HELD_LEN(0));
	recalled_comes(1, 0);
}

static bool stop_bits(void)
{
	tq_core_ctx_remove(bits_ctx);
	return unit_stop();
}

/* Checks that an entry ends that has taken a message whose data are on their way, if the sender is
 * removed. */
static bool drained_late(void)
{
	bool ok = start_bits() && get_queue();
	struct tq_req *req;

	if (!ok)
		return false;
	hold();
	ok = nkept == 1 && append(&nkept) == 1 && !tq_core_ended(&unit.core);
	remove_peer();
	tq_core_on_srqs_gone(&unit.core);
	req = tq_core_ended(&unit.core);
	ok = ok && req && req->user == &nkept && req->status.error == -EIO && !req->next;
	if (req)
		tq_core_release(req);
	return stop_bits() && ok;
}

/* Checks that a message that waits in a removed context is dropped, so that its send ends. */
static bool dropped(void)
{
	const struct tq_msg_rts m = {.hdr = {.type = TQ_MSG_RTS},
				     .env = {.ctx = tq_put32(BITS_CTX), .tag = tq_put64(TAG)},
				     .length = tq_put64(100000)};
	bool ok = start_bits();

	unit_comes(&m, TQ_MSG_RTS_LEN(0));
	ok = ok && nkept == 1 && !unit.fins;
	tq_core_ctx_remove(bits_ctx);
	ok = ok && unit.fins == 1;
	return unit_stop() && ok;
}

/* Checks that the last message of a queue ends before the next one, which came eagerly while the
 * queue was recalled. */
static bool in_order(void)
{
	static int first, second;
	struct tq_msg_notice m = {.hdr = {.type = TQ_MSG_NOTICE, .flags = TQ_NOTICE_LATE},
				  .seq = tq_put32(3)};
	bool ok = start_bits() && get_queue();
	struct tq_entry *entry;
	struct tq_req *req;

	if (!ok)
		return false;
	ok = !append(&first);
	entry = unit.posted;
	ok = ok && !append(&second);
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	unit_comes(&m, sizeof(m));
	recalled_comes(0, 1);
	bits_come(TAG, 2, false);
	ok = ok && !tq_core_has_ended(&unit.core);
	entry->prefix->bits = htole64(TAG);
	tq_core_on_delivered(&unit.core, entry, sizeof(uint64_t), NULL);
	req = tq_core_ended(&unit.core);
	ok = ok && req && req->user == &first && req->next && req->next->user == &second;
	for (struct tq_req *next; req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
	return stop_bits() && ok;
}

static int search(void)
{
	const struct tq_want all = {.rank = TQ_ANY_SOURCE, .ignore = UINT64_MAX};

	return tq_core_entry_append(bits_ctx, &all, NULL, TQ_ENTRY_SEARCH, NULL, NULL);
}

/* Checks that a search doesn't deny a message that its user knows, while the search recalls a queue
 * of the same sender. */
static bool found(void)
{
	bool ok = start_bits() && get_queue();

	if (!ok)
		return false;
	bits_come(TAG + 1, 1, false);
	ok = nkept == 1 && search() == -EAGAIN;
	recalled_comes(0, 0);
	ok = ok && search() == 1;
	unit_poll();
	ok = ok && !search();
	return stop_bits() && ok;
}

static int send_bits(unsigned flags)
{
	static const char header[TQ_HEADER_MAX];
	const struct tq_buf none = {0};
	struct tq_req *req;

	return tq_core_send_bits(bits_ctx, 0, TAG, header, &none, flags, NULL, &req);
}

/* Checks that messages whose receives are posted leave the tuple its queue, although none of them
 * is here when its NOTICE comes: the data take longer. */
static bool announced(void)
{
	enum { MESSAGES = 20 };
	struct tq_msg_notice m = {.hdr = {.type = TQ_MSG_NOTICE}};
	struct tq_entry *entries[MESSAGES];
	bool ok = start_bits() && get_queue();

	if (!ok)
		return false;
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		ok = ok && !append(NULL);
		entries[i] = unit.posted;
		m.seq = tq_put32(i + 1);
		unit_comes(&m, sizeof(m));
	}
	if (!ok || unit.stats.recalls)
		return false;
	for (int i = 0; i < MESSAGES; i++) {
		entries[i]->prefix->bits = htole64(TAG);
		tq_core_on_delivered(&unit.core, entries[i], sizeof(uint64_t), NULL);
	}
	unit_poll();
	return stop_bits() && ok;
}

/* Checks that each message that doesn't go eagerly, for which the user's header leaves less room,
 * asks for a queue. */
static bool asks_beside_header(void)
{
	enum { HEADER = 16 };
	const struct tq_msg_mask mask = {
		.hdr = {.type = TQ_MSG_MASK}, .ctx = tq_put32(BITS_CTX), .life = tq_put16(1)};
	static char data[4096];
	const struct tq_buf buf = {.addr = data, .len = unit_limits.control_data_max - HEADER + 1};
	bool ok = start_bits_with(HEADER) && send_bits(0) == 1;
	struct tq_req *req;

	if (!ok)
		return false;
	unit_set("promote_after", "1");
	unit_comes(&mask, sizeof(mask));
	for (int i = 0; i < 3; i++)
		ok = ok && !tq_core_send_bits(bits_ctx, 0, TAG, data, &buf, 0, NULL, &req);
	ok = ok && unit.asks.n;
	remove_peer();
	unit_poll();
	return stop_bits() && ok;
}

/* Checks that a synchronous send doesn't go to its tuple's queue, where a receive of the library
 * for a message that is kept would end the send. One that is to end when it is delivered goes
 * there. */
static bool not_direct(void)
{
	const struct tq_msg_mask mask = {
		.hdr = {.type = TQ_MSG_MASK}, .ctx = tq_put32(BITS_CTX), .life = tq_put16(1)};
	struct tq_msg_srqn offer = {.hdr = {.type = TQ_MSG_SRQN},
				    .rx_tuple = tq_put32(1),
				    .srqn = tq_put32(7),
				    .max_len = tq_put64(4096)};
	bool ok = start_bits() && send_bits(0) == 1;

	unit_set("promote_after", "0");
	unit_comes(&mask, sizeof(mask));
	for (int i = 0; i < 10 && !unit.asks.n; i++)
		ok = ok && send_bits(0) == 1;
	if (!ok || !unit.asks.n)
		return false;
	offer.tx_tuple = tq_put32(unit.asks.of[0]);
	unit_comes(&offer, sizeof(offer));
	for (int i = 0; i < 100 && !unit.switches; i++)
		ok = ok && send_bits(0) >= 0;
	ok = ok && unit.switches == 1 && !(unit.rts_flags & TQ_RTS_NODIRECT);
	ok = ok && !send_bits(TQ_SEND_DELIVERED) && !(unit.rts_flags & TQ_RTS_NODIRECT);
	ok = ok && !send_bits(TQ_SEND_SYNC) && unit.rts_flags & TQ_RTS_NODIRECT;
	return stop_bits() && ok;
}

int main(void)
{
	unit_check("ends", "a receive is cancelled after its context", cancelled_late());
	unit_check("ends", "a message that a probe has taken outlives its sender",
		   !received_late(eager_comes));
	unit_check("ends", "one whose data did not come ends with an error",
		   received_late(rts_comes) == -EIO);
	unit_check("ends", "an entry whose message is lost with its sender", drained_late());
	unit_check("ends", "a message that was kept in a removed context", dropped());
	unit_check("ends", "a queue's last message ends first", in_order());
	unit_check("ends", "a synchronous send isn't sent direct with match bits", not_direct());
	unit_check("ends", "a search that recalls a queue", found());
	unit_check("ends", "messages announced before their data are no early ones", announced());
	unit_check("ends", "a message that its header keeps from going eagerly asks for a queue",
		   asks_beside_header());
	return unit_status();
}
