/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of limits, of the rules by which a tuple gets or loses its queue, and of programs that
 * compute. */
#include "case_ops.h"

const struct small_case cases_rules[] = {
	/* A granted message waits for room in its lane, and the recall waits for the message. */
	{.name = "direct-granted-waits",
	 .lane_depth = 1,
	 .before = {PASS(), RECV(), RECV()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(.from = ANY_SOURCE),
		 SEND(.len = LONG)}},
	/* The HCA refuses the receives that are posted to the queue. */
	{.name = "direct-refused",
	 .no_srq_room = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), RECV(), SEND(.len = EAGER), RECV()}},
	/* Receives are promised to be long enough, until the receiver withdraws the promise. */
	{.name = "exact-length",
	 .max_direct = NO_SINK,
	 .ctx_flags = TQ_CTX_EXACT_LENGTH,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), RECV(), SET_FLAGS(.flags = 0), SEND(.len = LONG),
		 RECV(.len = 5)}},
	/* The promise is withdrawn while a message is held for which there is no memory then. */
	{.name = "exact-length-dry",
	 .max_direct = NO_SINK,
	 .ctx_flags = TQ_CTX_EXACT_LENGTH,
	 .no_registration = RECEIVER,
	 .no_copies = true,
	 .may_give_up = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SET_FLAGS(.flags = 0), RECV(.len = 3)}},
	/* A tuple gets no queue from an adapter without a sink. */
	{.name = "no-sink",
	 .max_direct = NO_SINK,
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), RECV(.len = 5), RECV(.len = 5)},
	 .counts = {COUNTER(promotions, 0)}},
	/* Messages in the queue come although the program that sent them computes. */
	{.name = "away-sender",
	 .away = SENDER,
	 .before = {PASS(), SEND(.len = LONG), SEND(.len = LONG)},
	 .ops = {RECV(.awaited = true), RECV(.awaited = true)}},
	/* A long message is read although the program that announced it computes. */
	{.name = "away-sender-read",
	 .protocol = TQ_PROTOCOL_RGET,
	 .away = SENDER,
	 .before = {SEND(.len = LONG)},
	 .ops = {RECV(.awaited = true)}},
	/* Sends to receives in the queue end although the receiving program computes. */
	{.name = "away-receiver",
	 .away = RECEIVER,
	 .before = {PASS(), RECV(), RECV()},
	 .ops = {SEND(.len = LONG, .awaited = true), SEND(.len = LONG, .awaited = true)}},
	/* Wildcards take messages of one sender although another, which has a queue, computes. */
	{.name = "away-other-sender",
	 .neps = 3,
	 .away = SENDER,
	 .before = {SEND(.at = 0, .to = 2, .len = EAGER), RECV(.at = 2, .from = 0)},
	 .ops = {RECV(.at = 2, .from = ANY_SOURCE, .awaited = true),
		 SEND(.at = 1, .to = 2, .len = LONG, .awaited = true),
		 RECV(.at = 2, .from = 1, .tag = 1, .awaited = true),
		 SEND(.at = 1, .to = 2, .tag = 1, .len = EAGER, .awaited = true)}},
	/* A message comes beside the queue of another tag although their sender computes. */
	{.name = "away-other-tag",
	 .away = SENDER,
	 .before = {PASS(), SEND(.len = LONG), SEND(.tag = 1, .len = EAGER)},
	 .ops = {RECV(.tag = 1, .awaited = true), RECV(.from = ANY_SOURCE)}},
	/* The connection fails at any time while the tuple has its queue. */
	{.name = "direct-breaks-off",
	 .may_break = true,
	 .before = {PASS()},
	 .ops = {RECV(), SEND(.len = LONG), SEND(.len = LONG), RECV()}},
	/* At the limit a new tuple gets the queue of the one that was idle for the longest time. */
	{.name = "limit-oldest-goes",
	 .hold_lanes = 2,
	 .tuples = 1,
	 .before = {PASS(), PASS(.tag = 1), PASS(.tag = 2), PASS(.tag = 3), PASS(.tag = 4),
		    PASS(.tag = 5), PASS(.tag = 6), PASS(.tag = 7), PASS(.tag = 8), PASS(.tag = 9),
		    PASS(.tag = 10)},
	 .counts = {COUNTER(promotions, 2), COUNTER(recalls_lru, 1)}},
	/* At the limit the queue of a tuple that is used stays, and that of an idle one goes. */
	{.name = "limit-used-stays",
	 .hold_lanes = 2,
	 .tuples = 2,
	 .before = {PASS(),          PASS(.tag = 1),  SEND(.len = LONG),
		    RECV(),          PASS(.tag = 2),  PASS(.tag = 3),
		    PASS(.tag = 4),  PASS(.tag = 5),  PASS(.tag = 6),
		    PASS(.tag = 7),  PASS(.tag = 8),  PASS(.tag = 9),
		    PASS(.tag = 10), PASS(.tag = 11), PASS(.tag = 12),
		    PASS(.tag = 13), PASS(.tag = 14), PASS(.tag = 15),
		    PASS(.tag = 16), PASS(.tag = 17), SEND(.len = LONG),
		    RECV()},
	 .counts = {COUNTER(recalls_lru, 1), COUNTER(recv_direct, 2)}},
	/* A tuple gets its queue only once as long as probes go on. */
	{.name = "probes-go-on",
	 .wild_backoff = 4,
	 .before = {PASS(), PASS_TO_PROBE(), PROBE(), PASS_TO_PROBE(), PASS_TO_PROBE(),
		    PASS_TO_PROBE(), PASS_TO_PROBE(), PASS_TO_PROBE(), PASS_TO_PROBE(),
		    PASS_TO_PROBE(), PASS_TO_PROBE()},
	 .counts = {COUNTER(promotions, 1)}},
	/* A tuple whose short messages come before their receives is refused a queue. */
	{.name = "early-messages",
	 .promote_after = 2,
	 .before = {SEND(.len = EAGER), SEND(.len = EAGER), SEND(.len = EAGER), SEND(.len = EAGER),
		    RECV(), RECV(), RECV(), RECV()},
	 .counts = {COUNTER(promotions, 0), COUNTER(refused_early, 1)}},
	/* Short messages that go through a ring ask for no queue, long ones do. */
	{.name = "near",
	 .promote_after = 2,
	 .rings = 1,
	 .before = {PASS(), PASS(), PASS(), PASS(), PASS(), SEND(.len = LONG), RECV(), PASS()},
	 .counts = {COUNTER(promotions, 1), COUNTER(sent_eager, 5), COUNTER(recv_direct, 1)}},
	/* A tuple gets its queue only once as long as wildcards go on. */
	{.name = "wildcards-go-on",
	 .wild_backoff = 4,
	 .before = {PASS(), PASS_TO_WILDCARD(), PASS_TO_WILDCARD(), PASS_TO_WILDCARD(),
		    PASS_TO_WILDCARD(), PASS_TO_WILDCARD(), PASS_TO_WILDCARD(), PASS_TO_WILDCARD()},
	 .counts = {COUNTER(promotions, 1), COUNTER(recalls_wildcard, 1)}},
	/* A tuple whose queue a wildcard recalled gets one again when wildcards have stopped. */
	{.name = "wildcards-stop",
	 .wild_backoff = 4,
	 .before = {PASS(), PASS_TO_WILDCARD(), PASS(), PASS(), PASS(), PASS(), PASS(), PASS()},
	 .counts = {COUNTER(promotions, 2), COUNTER(recalls_wildcard, 1)}},
	/* The receiver recalls a queue whose messages come before their receives. */
	{.name = "give-back",
	 .giveback_after = 2,
	 .before = {PASS(), SEND(.len = EAGER), SEND(.len = EAGER), SEND(.len = EAGER), RECV(),
		    RECV(), RECV()},
	 .counts = {COUNTER(recalls_early, 1)}},
	/* The sender asks for the recall of a queue because its short message finds no lane. */
	{.name = "give-back-no-lane",
	 .giveback_after = 1,
	 .before = {PASS(), PASS(.tag = 1), SEND(.len = LONG), SEND(.tag = 1, .len = EAGER),
		    RECV(.tag = 1), RECV()},
	 .counts = {COUNTER(recalls_asked, 1), COUNTER(no_lane, 1), COUNTER(recalls_early, 0)}},
	/* The lane of a tuple that has nothing on it goes to the tuple that needs one. */
	{.name = "idle-lane",
	 .before = {PASS(), PASS(.tag = 1), SEND(.len = LONG), RECV(), SEND(.tag = 1, .len = LONG),
		    RECV(.tag = 1)},
	 .counts = {COUNTER(recv_direct, 2), COUNTER(no_lane, 0)}},
	{.name = NULL},
};
