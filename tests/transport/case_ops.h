/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words in which small cases are written.
 *
 * Operations name the members of struct op that differ from the common case, in which endpoint 0
 * sends messages with tag 0 to endpoint 1, whose buffers have room for LONG bytes:
 *
 *     SEND(.len = EAGER)                           0 sends 3 bytes to 1
 *     SEND(.at = 1, .to = 2, .tag = 5, .len = LONG)
 *     RECV()                                       1 receives from 0
 *     RECV(.from = ANY_SOURCE, .tag = ANY_TAG)
 *
 * Sends of an endpoint are carried out in their order, and so is all else that it does. The
 * schedule decides how the two sequences, and those of other endpoints, are interleaved.
 */
#ifndef SIM_CASE_OPS_H
#define SIM_CASE_OPS_H

#include "cases.h"

/* A member that an operation names replaces the common value. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define ANY_SOURCE TQ_ANY_SOURCE
#define ANY_TAG    TQ_ANY_TAG

/* Bit masks of endpoints */
#define SENDER   (1u << 0)
#define RECEIVER (1u << 1)
#define BOTH     (SENDER | RECEIVER)

/* Bytes of an eager (and inlined) message, and of one that is not eager */
#define EAGER 3
#define LONG  8

#define SEND(...)                                              \
	{                                                      \
		.kind = OP_SEND, .at = 0, .to = 1, __VA_ARGS__ \
	}
#define SYNC_SEND(...) SEND(.flags = TQ_SEND_SYNC, __VA_ARGS__)
#define RECV(...)                                                             \
	{                                                                     \
		.kind = OP_RECV, .at = 1, .from = 0, .len = LONG, __VA_ARGS__ \
	}
#define PROBE(...)  RECV(.kind = OP_PROBE, .len = 16, __VA_ARGS__)
#define MPROBE(...) RECV(.kind = OP_MPROBE, .len = 16, __VA_ARGS__)
/* Cancels a receive of the endpoint, which is named by its number among all that are not sends. */
#define CANCEL(...)    RECV(.kind = OP_CANCEL, __VA_ARGS__)
#define SET_FLAGS(...) RECV(.kind = OP_FLAGS, __VA_ARGS__)

/* Sends a short message and receives it. The receive sees all effects of the send. */
#define PASS(...)             SEND(.len = EAGER, __VA_ARGS__), RECV(__VA_ARGS__)
#define PASS_TO_WILDCARD(...) RECV(.from = ANY_SOURCE, __VA_ARGS__), SEND(.len = EAGER, __VA_ARGS__)
#define PASS_TO_PROBE(...)    SEND(.len = EAGER, __VA_ARGS__), PROBE(__VA_ARGS__)

/* Names a counter and the value that it has at the end. */
#define COUNTER(counter, value)                                                              \
	{                                                                                    \
		.name = #counter, .offset = offsetof(struct tq_stats, counter), .n = (value) \
	}

#endif
