/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings in shared memory: messages of all lengths come whole and in order, and neither end trusts
 * the words that the other end writes. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "net/adapter/ring.h"
#include "unit_check.h"

#define SIZE    4096u
#define LONGEST 2000u

static struct tq_ring *ring;
static struct tq_ring_out out;
static struct tq_ring_in in;

static void start(void)
{
	/* The bytes that were there before don't matter. */
	memset(ring, 0xee, sizeof(*ring) + SIZE);
	in = (struct tq_ring_in){.ring = ring, .size = SIZE};
	out = (struct tq_ring_out){.ring = ring, .size = SIZE};
	tq_ring_reset(&in);
}

static uint32_t next_random(uint64_t *state)
{
	return (uint32_t)t_random(state);
}

static unsigned char byte_of(uint32_t message, uint32_t i)
{
	return (unsigned char)(message * 31 + i * 7);
}

/* Sends the message with this number. Returns false if there is no room. */
static bool send_one(uint32_t number, uint32_t len)
{
	unsigned char *room = tq_ring_room(&out, len);

	for (uint32_t i = 0; room && i < len; i++)
		room[i] = byte_of(number, i);
	if (room)
		tq_ring_send(&out, len);
	return room;
}

/* Returns 1 if the message with this number is read, 0 if there is none, -1 if it is wrong. */
static int read_one(uint32_t number, uint32_t len)
{
	unsigned char message[LONGEST];
	uint32_t got = 0;
	int rc = tq_ring_read(&in, message, LONGEST, &got);

	if (rc <= 0)
		return rc;
	for (uint32_t i = 0; i < got; i++)
		if (message[i] != byte_of(number, i))
			return -1;
	return got == len ? 1 : -1;
}

/* Returns the length of the message with this number: 8 to LONGEST. */
static uint32_t length_of(uint64_t seed, uint32_t number)
{
	uint64_t state = seed + number;

	next_random(&state);
	return next_random(&state) % 3 ? 8 + next_random(&state) % 100
				       : next_random(&state) % (LONGEST + 1 - 8) + 8;
}

/* Sends and reads at random. */
static int any_order(uint64_t seed)
{
	uint32_t sent = 0, read = 0;
	uint64_t state = seed;

	start();
	while (read < 20000) {
		if (next_random(&state) % 2) {
			sent += send_one(sent, length_of(seed, sent));
		} else {
			int rc = read_one(read, length_of(seed, read));

			if (rc < 0 || (!rc && read != sent))
				return 0;
			read += (uint32_t)rc;
		}
	}
	return 1;
}

static void *sends(void *arg)
{
	const uint32_t *n = arg;

	for (uint32_t i = 0; i < *n;)
		i += send_one(i, length_of(1, i));
	return NULL;
}

static int two_threads(void)
{
	uint32_t n = 200000, read = 0;
	pthread_t thread;
	int rc = 0;

	start();
	if (pthread_create(&thread, NULL, sends, &n))
		return 0;
	while (read < n && rc >= 0) {
		rc = read_one(read, length_of(1, read));
		read += rc > 0;
	}
	/* After a wrong message the sender may wait for room. */
	if (rc < 0) {
		unit_check("ring", "with two threads", false);
		exit(unit_status());
	}
	pthread_join(thread, NULL);
	return 1;
}

/* A message as long as there can be has room wherever the one before it ended. */
static int has_room_when_empty(void)
{
	uint32_t longest = 0;

	while (tq_ring_carries(SIZE, longest + 1))
		longest++;
	for (uint32_t len = 8; len < 500; len += 8) {
		start();
		for (uint32_t i = 0; i < SIZE / len * 2; i++) {
			if (!tq_ring_room(&out, longest) || !send_one(i, len) ||
			    read_one(i, len) != 1)
				return 0;
		}
	}
	return 1;
}

/* A full ring takes nothing, and has room again when all was read. */
static int fills_up(void)
{
	uint32_t sent = 0, read = 0;

	start();
	while (send_one(sent, 56))
		sent++;
	tq_ring_await(&out);
	if (send_one(sent, 56) || sent < SIZE / 64 - 2)
		return 0;
	while (read_one(read, 56) > 0)
		read++;
	return read == sent && tq_ring_is_awaited(&in) && !tq_ring_is_awaited(&in) &&
	       send_one(sent, 56);
}

/* The sender writes anything, at any time. The reader gets messages or an error, and reads nothing
 * but the ring: the sanitizers would tell. */
static int reader_survives(uint64_t seed)
{
	unsigned char message[LONGEST];
	uint64_t state = seed;
	uint32_t len;

	for (int i = 0; i < 2000; i++) {
		start();
		for (int j = 0; j < 200; j++) {
			uint32_t where = next_random(&state) % (SIZE / 4),
				 what = next_random(&state);
			int rc;

			if (what % 4)
				what = what % 8 ? what % (2 * LONGEST) : UINT32_MAX - what % 2;
			memcpy(ring->bytes + 4 * where, &what, sizeof(what));
			if (next_random(&state) % 4 == 0)
				ring->awaited = what;
			rc = tq_ring_read(&in, message, LONGEST, &len);
			if (rc < 0)
				break;
			if (rc > 0 && len > LONGEST)
				return 0;
			tq_ring_is_awaited(&in);
		}
	}
	return 1;
}

/* The reader writes any position. The sender never writes beside the ring, nor over bytes that
 * weren't read. */
static int sender_survives(uint64_t seed)
{
	uint64_t state = seed, sent;

	for (int i = 0; i < 2000; i++) {
		start();
		for (int j = 0; j < 200 && !out.broken; j++) {
			uint32_t len = next_random(&state) % LONGEST;
			unsigned char *room;

			sent = out.sent;
			ring->read = next_random(&state) % 4
					     ? sent - next_random(&state) % SIZE / 8 * 8
					     : next_random(&state);
			room = tq_ring_room(&out, len);
			if (!room)
				continue;
			if (room < ring->bytes || room + len > ring->bytes + SIZE)
				return 0;
			memset(room, 1, len);
			tq_ring_send(&out, len);
			if (out.sent - out.read > SIZE)
				return 0;
		}
	}
	return 1;
}

static int refuses_positions(void)
{
	start();
	send_one(0, 56);
	ring->read = 128; /* more than was sent */
	return tq_ring_has_read(&out, 0) && out.broken && !tq_ring_room(&out, SIZE / 2 - 16);
}

int main(void)
{
	ring = aligned_alloc(TQ_LINE, sizeof(*ring) + SIZE);
	if (!ring)
		return 1;
	unit_check("ring", "messages come whole and in order", any_order(1) && any_order(2));
	unit_check("ring", "with two threads", two_threads());
	unit_check("ring", "an empty one has room", has_room_when_empty());
	unit_check("ring", "a full one has none", fills_up());
	unit_check("ring", "a reader survives what its sender writes", reader_survives(3));
	unit_check("ring", "a sender survives what its reader writes", sender_survives(4));
	unit_check("ring", "a position that can't be breaks it", refuses_positions());
	unit_check("ring", "sizes",
		   tq_ring_size(1, 16416) == 65536 && tq_ring_size(65536, 100) == 65536 &&
			   tq_ring_size(65537, 100) == 131072 &&
			   !tq_ring_carries(65536, 32768 - 15) &&
			   tq_ring_carries(65536, 32768 - 16) && !tq_ring_carries(65535, 100) &&
			   !tq_ring_carries(0, 0) && !tq_ring_carries(1u << 31, 100));
	free(ring);
	return unit_status();
}
