/* SPDX-License-Identifier: BSD-3-Clause */
/* What the lists of small cases are written in. */
#ifndef SIM_CASE_OPS_H
#define SIM_CASE_OPS_H

#include "cases.h"

#define ANY_SRC TQ_ANY_SOURCE
#define ANY     TQ_ANY_TAG

/* dry: messages go from 0 to 1 */
#define RECEIVER (1u << 1)
#define BOTH     (1u << 0 | 1u << 1)

/* A tuple has its queue after this (two operations). */
#define WARM(from, to, t) SEND(from, to, t, EAGER), RECV(to, from, t, 8)

/* A wildcard takes a message of it. */
#define WILD(from, to, t) RECV(to, ANY_SRC, t, 8), SEND(from, to, t, EAGER)

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
/* One that needs nothing of those that are away. */
#define AWAITED_SEND(from, to, t, n)                                                 \
	{                                                                            \
		.kind = OP_SEND, .ep = (from), .peer = (to), .tag = (t), .len = (n), \
		.awaited = true                                                      \
	}
#define AWAITED_RECV(at, from, t, n)                                                 \
	{                                                                            \
		.kind = OP_RECV, .ep = (at), .peer = (from), .tag = (t), .len = (n), \
		.awaited = true                                                      \
	}
#define FLAGS(at, what)                                                 \
	{                                                               \
		.kind = OP_FLAGS, .ep = (at), .flags = (what), .len = 1 \
	}
#define COUNTED(counter, number)                                                          \
	{                                                                                 \
		.name = #counter, .at = offsetof(struct tq_stats, counter), .n = (number) \
	}
#define CANCEL(at, which)                                                  \
	{                                                                  \
		.kind = OP_CANCEL, .ep = (at), .target = (which), .len = 1 \
	}

#endif
