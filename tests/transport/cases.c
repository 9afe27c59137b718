/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdlib.h>

#include "users.h"

#define ANY_SRC TQ_ANY_SOURCE
#define ANY     TQ_ANY_TAG

/* dry: messages go from 0 to 1 */
#define RECEIVER (1u << 1)
#define BOTH     (1u << 0 | 1u << 1)

/* A tuple has its queue after this (two operations). */
#define WARM(from, to, t) SEND(from, to, t, EAGER), RECV(to, from, t, 8)

/* Messages of 3 bytes are eager (and inlined), those of 8 are not. */
#define EAGER 3
#define LONG  8

#define SEND(from, to, t, n)                                                        \
	{                                                                           \
		.kind = OP_SEND, .ep = (from), .peer = (to), .tag = (t), .len = (n) \
	}
#define SSEND(from, to, t, n)                                                        \
	{                                                                            \
		.kind = OP_SEND, .ep = (from), .peer = (to), .tag = (t), .len = (n), \
		.flags = TQ_SEND_SYNC                                                \
	}
#define RECV(at, from, t, n)                                                        \
	{                                                                           \
		.kind = OP_RECV, .ep = (at), .peer = (from), .tag = (t), .len = (n) \
	}
#define SCATTERED(at, from, t, n)                                                    \
	{                                                                            \
		.kind = OP_RECV, .ep = (at), .peer = (from), .tag = (t), .len = (n), \
		.scattered = true                                                    \
	}
#define PROBE(at, from, t)                                                          \
	{                                                                           \
		.kind = OP_PROBE, .ep = (at), .peer = (from), .tag = (t), .len = 16 \
	}
#define MPROBE(at, from, t)                                                          \
	{                                                                            \
		.kind = OP_MPROBE, .ep = (at), .peer = (from), .tag = (t), .len = 16 \
	}
#define CANCEL(at, which)                                                  \
	{                                                                  \
		.kind = OP_CANCEL, .ep = (at), .target = (which), .len = 1 \
	}

const struct small_case small_cases[] = {
	/* The first message of a tuple has no record, the second one asks. */
	{.name = "first-is-long",
	 .neps = 2,
	 .lanes = 1,
	 .promote = 1,
	 .big = true,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "first-and-wildcard",
	 .neps = 2,
	 .lanes = 1,
	 .promote = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG),
		 RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	/* From the beginning. */
	{.name = "one-tuple",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "two-tags",
	 .neps = 2,
	 .lanes = 1,
	 .big = true,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 1, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "no-lane",
	 .neps = 2,
	 .lanes = 0,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "lane-comes",
	 .neps = 2,
	 .lanes = -1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "wildcard-at-offer",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, ANY_SRC, 0, 8)}},
	{.name = "wildcard-first",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, ANY_SRC, 0, 8),
		 RECV(1, 0, 0, 8)}},
	{.name = "any-tag-at-offer",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 1, LONG), RECV(1, 0, 0, 8), RECV(1, 0, ANY, 8)}},
	{.name = "two-senders",
	 .neps = 3,
	 .lanes = 1,
	 .big = true,
	 .ops = {SEND(0, 2, 0, LONG), SEND(0, 2, 0, LONG), SEND(1, 2, 0, LONG), RECV(2, 0, 0, 8),
		 RECV(2, ANY_SRC, 0, 8), RECV(2, ANY_SRC, 0, 8)}},
	{.name = "two-senders-eager",
	 .neps = 3,
	 .lanes = 1,
	 .ops = {SEND(0, 2, 0, EAGER), SEND(0, 2, 0, EAGER), SEND(1, 2, 0, EAGER),
		 RECV(2, ANY_SRC, 0, 8), RECV(2, 0, 0, 8), RECV(2, ANY_SRC, ANY, 8)}},
	{.name = "truncated",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 1),
		 RECV(1, 0, 0, 2), RECV(1, 0, 0, 5)}},
	{.name = "cancel",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8),
		 CANCEL(1, 1), RECV(1, 0, 0, 8)}},
	{.name = "cancel-first",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8),
		 CANCEL(1, 0), RECV(1, 0, 0, 8)}},
	{.name = "cancel-wildcard",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8),
		 CANCEL(1, 0), RECV(1, 0, 0, 8)}},
	{.name = "probe",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 PROBE(1, 0, 0), PROBE(1, ANY_SRC, ANY)}},
	{.name = "mprobe",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), MPROBE(1, 0, 0),
		 MPROBE(1, 0, 0), RECV(1, 0, 0, 8)}},
	{.name = "too-long-for-direct",
	 .neps = 2,
	 .lanes = 1,
	 .direct = 6,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "scattered",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 SCATTERED(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "no-registration",
	 .neps = 2,
	 .lanes = 1,
	 .dry = BOTH,
	 .ops = {SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	/* Held, and no memory for it where it is received. */
	{.name = "again",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .dry = RECEIVER,
	 .no_pool = true,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8),
		 RECV(1, ANY_SRC, 0, 8)}},
	{.name = "again-twice",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .dry = RECEIVER,
	 .no_pool = true,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SSEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 5)}},
	{.name = "again-mprobe",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .dry = RECEIVER,
	 .no_pool = true,
	 .big = true,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), MPROBE(1, 0, 0),
		 MPROBE(1, 0, 0), RECV(1, 0, 0, 8)}},
	{.name = "again-two-tags",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 1,
	 .dry = RECEIVER,
	 .no_pool = true,
	 .big = true,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 RECV(1, 0, 1, 8), RECV(1, 0, ANY, 8), CANCEL(1, 2)}},
	{.name = "synchronous",
	 .neps = 2,
	 .lanes = 1,
	 .ops = {SSEND(0, 1, 0, EAGER), SSEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, ANY_SRC, 0, 8)}},
	{.name = "both-ways",
	 .neps = 2,
	 .lanes = 1,
	 .big = true,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(1, 0, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, ANY_SRC, 0, 8), RECV(0, 1, 0, 8)}},
	{.name = "rput",
	 .neps = 2,
	 .lanes = 1,
	 .protocol = TQ_PROTOCOL_RPUT,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, ANY, 8),
		 RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 1, 8)}},
	{.name = "rget",
	 .neps = 2,
	 .lanes = 1,
	 .protocol = TQ_PROTOCOL_RGET,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG), SEND(0, 1, 0, EAGER), RECV(1, 0, ANY, 8),
		 RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 1, 8)}},
	{.name = "tupleq-copy",
	 .neps = 2,
	 .lanes = 1,
	 .protocol = TQ_PROTOCOL_COPY,
	 .ops = {SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, ANY_SRC, 0, 8)}},
	/* With queues from the beginning. */
	{.name = "direct",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-two-tags-one-lane",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 SEND(0, 1, 0, LONG), RECV(1, 0, 1, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-three-tags-one-lane",
	 .neps = 2,
	 .warm = 6,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), WARM(0, 1, 2), SEND(0, 1, 0, LONG),
		 SEND(0, 1, 1, LONG), SEND(0, 1, 2, LONG), RECV(1, 0, 2, 8), RECV(1, 0, 1, 8),
		 RECV(1, 0, 0, 8)}},
	{.name = "direct-no-lane",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 0,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-wildcard-last",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 0, 8)}},
	{.name = "direct-wildcard-between",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-wildcard-first",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG),
		 RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-any-tag",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 2,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 RECV(1, 0, ANY, 8), RECV(1, 0, ANY, 8)}},
	{.name = "direct-any-tag-one-lane",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8), RECV(1, 0, ANY, 8)}},
	{.name = "direct-any-tag-two-queues",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 2,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 RECV(1, 0, ANY, 8), RECV(1, 0, 0, 8), RECV(1, 0, 1, 8)}},
	{.name = "overtaking-two-queues",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 2,
	 .flags = TQ_CTX_OVERTAKING,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG),
		 RECV(1, 0, ANY, 8), RECV(1, 0, 0, 8), RECV(1, 0, 1, 8)}},
	{.name = "overtaking-rts",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .direct = EAGER + 1,
	 .flags = TQ_CTX_OVERTAKING,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, ANY, 8),
		 RECV(1, 0, 0, 8)}},
	{.name = "overtaking-beside-queue",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .flags = TQ_CTX_OVERTAKING,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 1, EAGER), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, 0, ANY, 8), RECV(1, ANY_SRC, ANY, 8)}},
	{.name = "direct-two-wildcards",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 2,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 1, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, ANY_SRC, 0, 8), RECV(1, 0, ANY, 8)}},
	{.name = "direct-two-senders",
	 .neps = 3,
	 .warm = 4,
	 .lanes = 1,
	 .ops = {WARM(0, 2, 0), WARM(1, 2, 0), SEND(0, 2, 0, LONG), SEND(1, 2, 0, LONG),
		 RECV(2, ANY_SRC, 0, 8), RECV(2, ANY_SRC, 0, 8)}},
	{.name = "direct-two-senders-mixed",
	 .neps = 3,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 2, 0), SEND(0, 2, 0, LONG), SEND(1, 2, 0, EAGER), SEND(0, 2, 0, EAGER),
		 RECV(2, ANY_SRC, 0, 8), RECV(2, 0, 0, 8)}},
	{.name = "direct-cancel",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8),
		 RECV(1, 0, 0, 8), CANCEL(1, 1), RECV(1, 0, 0, 8)}},
	{.name = "direct-cancel-all",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8),
		 CANCEL(1, 1), CANCEL(1, 2)}},
	{.name = "direct-probe",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), PROBE(1, 0, 0),
		 RECV(1, 0, 0, 8), PROBE(1, ANY_SRC, ANY), RECV(1, 0, 0, 8)}},
	{.name = "direct-mprobe",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), MPROBE(1, 0, 0),
		 RECV(1, 0, 0, 8), MPROBE(1, 0, 0)}},
	{.name = "direct-mprobe-held",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), MPROBE(1, 0, 0),
		 MPROBE(1, 0, 0), RECV(1, 0, 0, 8)}},
	{.name = "direct-held-shallow",
	 .neps = 2,
	 .warm = 5,
	 .lanes = 1,
	 .depth = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-bulk",
	 .neps = 2,
	 .warm = 4,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), WARM(0, 1, 1), SEND(0, 1, 1, LONG), SEND(0, 1, 0, LONG),
		 SEND(0, 1, 0, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 1, 8)}},
	{.name = "direct-all-held",
	 .neps = 2,
	 .warm = 5,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG),
		 RECV(1, 0, ANY, 8), MPROBE(1, 0, 0), RECV(1, ANY_SRC, 0, 2), RECV(1, 0, 0, 8)}},
	{.name = "direct-truncated",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 1), RECV(1, ANY_SRC, 0, 2), RECV(1, 0, 0, 5)}},
	{.name = "direct-tuple-limit",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 2,
	 .tuples = 1,
	 .big = true,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 1, LONG), SEND(0, 1, 0, LONG),
		 SEND(0, 1, 1, LONG), RECV(1, 0, 0, 8), RECV(1, 0, 1, 8), RECV(1, 0, 0, 8),
		 RECV(1, 0, 1, 8)}},
	{.name = "direct-shallow-queue",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .depth = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-too-long",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .direct = 6,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-scattered",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER),
		 RECV(1, 0, 0, 8), SCATTERED(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-synchronous",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SSEND(0, 1, 0, EAGER), SSEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 0, 8)}},
	{.name = "direct-copy",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .protocol = TQ_PROTOCOL_COPY,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER),
		 RECV(1, 0, 0, 8), RECV(1, 0, 0, 8), RECV(1, ANY_SRC, 0, 8)}},
	{.name = "direct-copied-and-later",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, EAGER), RECV(1, ANY_SRC, 0, 8),
		 SEND(0, 1, 0, EAGER), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = "direct-again",
	 .neps = 2,
	 .warm = 2,
	 .lanes = 1,
	 .ops = {WARM(0, 1, 0), SEND(0, 1, 0, LONG), SEND(0, 1, 0, EAGER), SEND(0, 1, 0, EAGER),
		 RECV(1, ANY_SRC, 0, 8), RECV(1, 0, 0, 8), RECV(1, 0, 0, 8)}},
	{.name = NULL},
};

void case_start(const struct small_case *c, struct world *w)
{
	world_start(w);
	for (int i = 0; i < CASE_OPS && c->ops[i].len; i++) {
		struct op *op = program_add(&w->prog, &c->ops[i]);

		if (i >= c->warm)
			continue;
		(op->kind == OP_SEND ? w->prog.sends : w->prog.recvs)[op->ep].next++;
		users_op(w, op);
		/* The streams are empty so far, so this is the network alone. */
		world_settle(w);
	}
}

struct world *case_world(const struct small_case *c)
{
	struct world *w = calloc(1, sizeof(*w));
	struct model_conf *conf = &w->m.conf;

	*conf = (struct model_conf){
		.neps = c->neps,
		.node = {0, 1, 2, 3},
		.hold_lanes = c->lanes < 0 ? 1 : c->lanes,
		.lane_depth = 8,
		.lazy = 256,
		.eager_bufs = 64,
		.copy_pool = c->no_pool ? 0 : 4096,
		.srqs = 64,
		.tick = c->slow ? 1000000 : 0,
		.lanes_ready = c->lanes >= 0,
		.dry = c->dry,
	};
	w->plenty = true;
	for (int e = 0; e < c->neps; e++) {
		struct model_ep *ep = &w->m.ep[e];

		world_defaults(&ep->params);
		ep->params.promote_after = c->promote;
		ep->params.wild_backoff = 0;
		ep->params.eager_limit = EAGER;
		ep->params.copy_limit = LONG + 1;
		ep->params.protocol = c->protocol;
		ep->params.rendezvous = c->rendezvous;
		if (c->tuples)
			ep->params.tuples = c->tuples;
		ep->limits = (struct tq_wire_limits){
			.max_inline = EAGER,
			.eager_max = EAGER,
			.max_direct = c->direct ? (uint64_t)c->direct : 1u << 20,
			.max_send = 1u << 20,
			.max_sge = 2,
			.max_sge_rd = 2,
			.max_srq_sge = 2,
			.srq_depth = c->depth ? (uint32_t)c->depth : 16,
		};
	}
	w->prog.nctx = 1;
	w->prog.ctx_flags = c->flags;
	return w;
}
