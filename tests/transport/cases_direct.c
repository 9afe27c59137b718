/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of tuples that have their queue already. */
#include "case_ops.h"

const struct small_case cases_direct[] = {
	/* Messages go to their tuple's queue, before or after their receives. */
	{.name = "direct",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), SEND(.len = LONG), RECV(), RECV(), RECV()}},
	/* Two tuples share a hold lane, and receives come in the other order. */
	{.name = "direct-two-tags-one-lane",
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = LONG), RECV(.tag = 1),
		 RECV(), RECV()}},
	/* Three tuples share a hold lane, and receives come in the other order. */
	{.name = "direct-three-tags-one-lane",
	 .before = {PASS(), PASS(.tag = 1), PASS(.tag = 2)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.tag = 2, .len = LONG),
		 RECV(.tag = 2), RECV(.tag = 1), RECV()}},
	/* A tuple has its queue, but there are no hold lanes. */
	{.name = "direct-no-lane",
	 .hold_lanes = NO_LANE,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(), RECV()}},
	/* A wildcard recalls a queue behind two receives that it already holds. */
	{.name = "direct-wildcard-last",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(),
		 RECV(.from = ANY_SOURCE)}},
	/* A wildcard recalls a queue between two receives by name. */
	{.name = "direct-wildcard-between",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(),
		 RECV(.from = ANY_SOURCE), RECV()}},
	/* A wildcard recalls a queue before any receive by name. */
	{.name = "direct-wildcard-first",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), SEND(.len = LONG), RECV(.from = ANY_SOURCE),
		 RECV(), RECV()}},
	/* Receives of any tag recall the queues of two tuples. */
	{.name = "direct-any-tag",
	 .hold_lanes = 2,
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), RECV(.tag = ANY_TAG),
		 RECV(.tag = ANY_TAG)}},
	/* A receive of any tag recalls the queues of two tuples that share one hold lane. */
	{.name = "direct-any-tag-one-lane",
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = EAGER), RECV(),
		 RECV(.tag = ANY_TAG)}},
	/* A receive of any tag precedes one by name for each of two queues. */
	{.name = "direct-any-tag-two-queues",
	 .hold_lanes = 2,
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), RECV(.tag = ANY_TAG), RECV(),
		 RECV(.tag = 1)}},
	/* With TQ_CTX_OVERTAKING a receive of any tag precedes those by name for two queues. */
	{.name = "overtaking-two-queues",
	 .hold_lanes = 2,
	 .ctx_flags = TQ_CTX_OVERTAKING,
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), RECV(.tag = ANY_TAG), RECV(),
		 RECV(.tag = 1)}},
	/* With TQ_CTX_OVERTAKING messages too long for the queue stay in their order. */
	{.name = "overtaking-rts",
	 .max_direct = EAGER + 1,
	 .ctx_flags = TQ_CTX_OVERTAKING,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(.tag = ANY_TAG), RECV()}},
	/* With TQ_CTX_OVERTAKING wildcards take a message of another tag beside the queue. */
	{.name = "overtaking-beside-queue",
	 .ctx_flags = TQ_CTX_OVERTAKING,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = EAGER), SEND(.len = LONG), RECV(),
		 RECV(.tag = ANY_TAG), RECV(.from = ANY_SOURCE, .tag = ANY_TAG)}},
	/* A receive from any source and one of any tag recall the queues of two tuples. */
	{.name = "direct-two-wildcards",
	 .hold_lanes = 2,
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.tag = 1, .len = LONG), SEND(.len = LONG), RECV(.from = ANY_SOURCE),
		 RECV(.tag = ANY_TAG)}},
	/* Wildcards recall the queues of two senders. */
	{.name = "direct-two-senders",
	 .neps = 3,
	 .before = {SEND(.at = 0, .to = 2, .len = EAGER), RECV(.at = 2, .from = 0),
		    SEND(.at = 1, .to = 2, .len = EAGER), RECV(.at = 2, .from = 1)},
	 .ops = {SEND(.at = 0, .to = 2, .len = LONG), SEND(.at = 1, .to = 2, .len = LONG),
		 RECV(.at = 2, .from = ANY_SOURCE), RECV(.at = 2, .from = ANY_SOURCE)}},
	/* Wildcards take messages of two senders of which one has a queue. */
	{.name = "direct-two-senders-mixed",
	 .neps = 3,
	 .before = {SEND(.at = 0, .to = 2, .len = EAGER), RECV(.at = 2, .from = 0)},
	 .ops = {SEND(.at = 0, .to = 2, .len = LONG), SEND(.at = 1, .to = 2, .len = EAGER),
		 SEND(.at = 0, .to = 2, .len = EAGER), RECV(.at = 2, .from = ANY_SOURCE),
		 RECV(.at = 2, .from = 0)}},
	/* The first of two receives in the queue is cancelled. */
	{.name = "direct-cancel",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(), CANCEL(.receive = 1),
		 RECV()}},
	/* Both receives in the queue are cancelled. */
	{.name = "direct-cancel-all",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), RECV(), RECV(), CANCEL(.receive = 1), CANCEL(.receive = 2)}},
	/* Probes recall the queue before and between receives. */
	{.name = "direct-probe",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), PROBE(), RECV(),
		 PROBE(.from = ANY_SOURCE, .tag = ANY_TAG), RECV()}},
	/* Matched probes recall the queue before and after a receive. */
	{.name = "direct-mprobe",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), MPROBE(), RECV(), MPROBE()}},
	/* Matched probes take held messages, and a receive comes after them. */
	{.name = "direct-mprobe-held",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), MPROBE(), MPROBE(), RECV()}},
	/* Three messages are held in a recalled queue that has room for one receive. */
	{.name = "direct-held-shallow",
	 .srq_depth = 1,
	 .before = {PASS(), SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG)},
	 .ops = {RECV(.from = ANY_SOURCE), RECV(), RECV()}},
	/* A tuple stays on the bulk lane while it has sends there, even if a hold lane is free. */
	{.name = "direct-bulk",
	 .before = {PASS(), PASS(.tag = 1)},
	 .ops = {SEND(.tag = 1, .len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(),
		 RECV(.tag = 1)}},
	/* A wildcard, a matched probe, a short receive and one by name take held messages. */
	{.name = "direct-all-held",
	 .before = {PASS(), SEND(.len = LONG), SEND(.len = EAGER), SEND(.len = LONG)},
	 .ops = {RECV(.tag = ANY_TAG), MPROBE(), RECV(.from = ANY_SOURCE, .len = 2), RECV()}},
	/* Receives in the queue are shorter than their messages, without any NOTICE. */
	{.name = "direct-truncated",
	 .giveback_after = NEVER,
	 .before = {PASS()},
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = LONG), RECV(.len = 1),
		 RECV(.from = ANY_SOURCE, .len = 2), RECV(.len = 5)}},
	/* Two tuples need the only queue in turn. */
	{.name = "direct-tuple-limit",
	 .hold_lanes = 2,
	 .tuples = 1,
	 .partial = true,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.tag = 1, .len = LONG), SEND(.len = LONG),
		 SEND(.tag = 1, .len = LONG), RECV(), RECV(.tag = 1), RECV(), RECV(.tag = 1)}},
	/* More receives are posted than the queue has room for. */
	{.name = "direct-shallow-queue",
	 .srq_depth = 1,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = LONG), RECV(), RECV(), RECV()}},
	/* A message between two others is longer than the queue may take. */
	{.name = "direct-too-long",
	 .max_direct = 6,
	 .before = {PASS()},
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(),
		 RECV()}},
	/* The buffer of a receive between two in the queue is not contiguous. */
	{.name = "direct-scattered",
	 .before = {PASS()},
	 .ops = {SEND(.len = EAGER), SEND(.len = LONG), SEND(.len = EAGER), RECV(),
		 RECV(.scattered = true), RECV()}},
	/* Synchronous sends to the queue end no earlier than their receives are posted. */
	{.name = "direct-synchronous",
	 .before = {PASS()},
	 .ops = {SYNC_SEND(.len = EAGER), SYNC_SEND(.len = LONG), SEND(.len = EAGER), RECV(),
		 RECV(), RECV(.from = ANY_SOURCE)}},
	/* With tupleq-copy the sender copies long messages, and a wildcard comes last. */
	{.name = "direct-copy",
	 .protocol = TQ_PROTOCOL_COPY,
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = LONG), SEND(.len = EAGER), RECV(), RECV(),
		 RECV(.from = ANY_SOURCE)}},
	/* A wildcard recalls a queue while the sender has only short messages, which are copied. */
	{.name = "direct-copied-and-later",
	 .before = {PASS()},
	 .ops = {SEND(.len = EAGER), SEND(.len = EAGER), RECV(.from = ANY_SOURCE),
		 SEND(.len = EAGER), RECV(), RECV()}},
	/* A wildcard recalls a queue while the sender has a long message before two short ones. */
	{.name = "direct-again",
	 .before = {PASS()},
	 .ops = {SEND(.len = LONG), SEND(.len = EAGER), SEND(.len = EAGER),
		 RECV(.from = ANY_SOURCE), RECV(), RECV()}},
	{.name = NULL},
};
