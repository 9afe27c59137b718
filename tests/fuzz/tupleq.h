/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libtupleq for the fuzzer below the provider of libfabric: contexts with match bits and their
 * lists of entries, in which nothing happens by itself. The functions here stand for the peers.
 */
#ifndef FUZZ_TUPLEQ_H
#define FUZZ_TUPLEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tupleq/look_up.h>

#define FAKE_PEERS 2
/* The ids of the contexts for requests and answers; small ones are those of endpoints. */
#define FAKE_REQUESTS UINT32_C(0xfffffff0)
#define FAKE_ANSWERS  UINT32_C(0xfffffff1)

void fake_start(void);
/* Checks that all objects were freed. */
void fake_nothing_left(void);
/* Returns how many registrations there are. */
unsigned fake_registrations(void);
struct tq_peer *fake_peer(unsigned index);
unsigned fake_index(const struct tq_peer *peer);
/* Returns the name of a peer. */
struct tq_locator fake_locator(unsigned peer);

/* A message comes from a peer: an entry takes it, or it waits, or it is dropped. Its data come
 * later. */
void fake_message(uint32_t ctx, unsigned peer, uint64_t bits, const void *header, const void *data,
		  size_t len);
/* The data of the oldest message come, if there is any, or its connection fails. */
void fake_deliver(bool fails);
void fake_deliver_all(void);
/* Ends all that is under way: also requests that wait for answers, whose connections fail. */
void fake_drain(void);

/* The answers that were sent since fake_forget_answer(): how many, and the last one. */
struct fake_answer {
	unsigned count;
	uint64_t error;
	size_t len;
	unsigned char data[8192];
};
const struct fake_answer *fake_answer(void);
void fake_forget_answer(void);

#endif
