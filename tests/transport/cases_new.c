/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of tuples from their first message on. */
#include "case_ops.h"

const struct small_case cases_new[] = {
	/* A tuple leaves no record of its first message, and requests a queue with the second. */
	{.name = "first-is-long",
	 .promote_after = 1,
	 .partial = true,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(), RECV()}},
	/* A wildcard takes the first message of a tuple, whose second requests the queue. */
	{.name = "first-and-wildcard",
	 .promote_after = 1,
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), SEND(.len = LONG), RECV(.from = ANY_SOURCE),
		 RECV(), RECV()}},
	/* The first message requests the queue, and others follow before the offer comes. */
	{.name = "one-tuple",
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(),
		 RECV()}},
	/* Two tuples request queues, and their receives are posted in the other order. */
	{.name = "two-tags",
	 .partial = true,
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = EAGER), RECV(.tag = 1),
		 RECV(), RECV()}},
	/* A tuple gets its queue where there are no hold lanes. */
	{.name = "no-lane",
	 .hold_lanes = NO_LANE,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(), RECV()}},
	/* The hold lane becomes ready at any time, before the tuple has its queue or after. */
	{.name = "lane-comes",
	 .hold_lanes = LANE_COMES,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV()}},
	/* A wildcard recalls a queue whose offer is still under way. */
	{.name = "wildcard-at-offer",
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(.from = ANY_SOURCE)}},
	/* A wildcard is posted before the first receive that names the sender. */
	{.name = "wildcard-first",
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), RECV(.from = ANY_SOURCE), RECV()}},
	/* A receive of any tag recalls a queue whose offer is still under way. */
	{.name = "any-tag-at-offer",
	 .ops = {SEND(.len = EAGER), SEND(.tag = 1, .len = LONG), RECV(), RECV(.tag = ANY_TAG)}},
	/* Wildcards and a receive by name take long messages of two senders. */
	{.name = "two-senders",
	 .neps = 3,
	 .partial = true,
	 .ops = {SEND(.at = 0, .to = 2, .len = LONG), SEND(.at = 0, .to = 2, .len = LONG),
		 SEND(.at = 1, .to = 2, .len = LONG), RECV(.at = 2, .from = 0),
		 RECV(.at = 2, .from = ANY_SOURCE), RECV(.at = 2, .from = ANY_SOURCE)}},
	/* Wildcards and a receive by name take short messages of two senders. */
	{.name = "two-senders-eager",
	 .neps = 3,
	 .ops = {SEND(.at = 0, .to = 2, .len = EAGER), SEND(.at = 0, .to = 2, .len = EAGER),
		 SEND(.at = 1, .to = 2, .len = EAGER), RECV(.at = 2, .from = ANY_SOURCE),
		 RECV(.at = 2, .from = 0), RECV(.at = 2, .from = ANY_SOURCE, .tag = ANY_TAG)}},
	/* Receives are shorter than their messages while the tuple gets its queue. */
	{.name = "truncated",
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = LONG), RECV(.len = 1),
		 RECV(.len = 2), RECV(.len = 5)}},
	/* The second receive is cancelled, which the queue may already hold. */
	{.name = "cancel",
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), RECV(), RECV(), CANCEL(.receive = 1),
		 RECV()}},
	/* The first receive is cancelled, and later ones move up. */
	{.name = "cancel-first",
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(), CANCEL(.receive = 0),
		 RECV()}},
	/* A wildcard is cancelled that holds up the receives behind it. */
	{.name = "cancel-wildcard",
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(.from = ANY_SOURCE), RECV(),
		 CANCEL(.receive = 0), RECV()}},
	/* Probes by name and by wildcard find long messages while the tuple gets its queue. */
	{.name = "probe",
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(), PROBE(),
		 PROBE(.from = ANY_SOURCE, .tag = ANY_TAG)}},
	/* Matched probes take long messages while the tuple gets its queue. */
	{.name = "mprobe",
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), MPROBE(), MPROBE(),
		 RECV()}},
	/* A message between two others is longer than a queue may take. */
	{.name = "too-long-for-direct",
	 .max_direct = 6,
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(),
		 RECV()}},
	/* The buffer of a receive between two others is not contiguous. */
	{.name = "scattered",
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = LONG), RECV(),
		 RECV(.scattered = true), RECV()}},
	/* Neither side can register memory, so all data are copied. */
	{.name = "no-registration",
	 .no_registration = BOTH,
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(),
		 RECV()}},
	/* A held message is sent again, because its receiver has no memory for it. */
	{.name = "again",
	 .no_registration = RECEIVER,
	 .no_copies = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(.from = ANY_SOURCE)}},
	/* Two held messages are sent again, one synchronous and one longer than its receive. */
	{.name = "again-twice",
	 .no_registration = RECEIVER,
	 .no_copies = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SYNC_SEND(.len = LONG), RECV(), RECV(.len = 5)}},
	/* Matched probes take held messages for which the receiver has no memory. */
	{.name = "again-mprobe",
	 .no_registration = RECEIVER,
	 .no_copies = true,
	 .partial = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), MPROBE(), MPROBE(), RECV()}},
	/* Held messages of two tuples are sent again although one of the receives is cancelled. */
	{.name = "again-two-tags",
	 .no_registration = RECEIVER,
	 .no_copies = true,
	 .partial = true,
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), RECV(.tag = 1),
		 RECV(.tag = ANY_TAG), CANCEL(.receive = 2)}},
	/* Synchronous sends end no earlier than their receives are posted. */
	{.name = "synchronous",
	 .ops = {SYNC_SEND(.len = EAGER), SYNC_SEND(.len = LONG), RECV(),
		 RECV(.from = ANY_SOURCE)}},
	/* Both endpoints send to each other, and a wildcard recalls one of the two queues. */
	{.name = "both-ways",
	 .partial = true,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.at = 1, .to = 0, .len = LONG), RECV(),
		 RECV(.from = ANY_SOURCE), RECV(.at = 0, .from = 1)}},
	/* With rput there are no queues, and long messages are written by RDMA. */
	{.name = "rput",
	 .protocol = TQ_PROTOCOL_RPUT,
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = EAGER),
		 RECV(.tag = ANY_TAG), RECV(), RECV(.from = ANY_SOURCE, .tag = 1)}},
	/* With rget there are no queues, and long messages are read by RDMA. */
	{.name = "rget",
	 .protocol = TQ_PROTOCOL_RGET,
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = EAGER),
		 RECV(.tag = ANY_TAG), RECV(), RECV(.from = ANY_SOURCE, .tag = 1)}},
	/* A sender requests queues of a receiver whose protocol has none. */
	{.name = "tupleq-to-rget",
	 .receiver_protocol = TQ_PROTOCOL_RGET,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(), RECV()}},
	/* A receive of any tag takes no message with a negative tag. */
	{.name = "negative-tag",
	 .ops = {SEND(.tag = -5, .len = EAGER), SEND(.len = LONG), RECV(.tag = ANY_TAG),
		 RECV(.tag = -5)}},
	/* With tupleq-copy the sender copies long messages while the tuple gets its queue. */
	{.name = "tupleq-copy",
	 .protocol = TQ_PROTOCOL_COPY,
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(.from = ANY_SOURCE)}},
	{.name = NULL},
};
