/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h - a packet as a port would send it, for captures: on InfiniBand from the LRH to the VCRC
 * (IBA 6), on Ethernet from the MAC addresses to the ICRC (IBA annexes A16 and A17).
 */
#ifndef SHCA_PACKET_H
#define SHCA_PACKET_H

#include <endian.h>
#include <string.h>

#include "hca/queues/queue_pair.h"

/* The longest headers in front of a BTH: Ethernet, IPv6, UDP. */
#define SHCA_PACKET_FRONT 64
/* The longest BTH and extended headers, data, padding, ICRC and VCRC. */
#define SHCA_PACKET_REST (64 + 4096 + 12)

struct shca_packet {
	uint8_t bytes[SHCA_PACKET_FRONT + SHCA_PACKET_REST];
	uint32_t begin, end; /* of the bytes that are there */
};

/* The contents of a BTH (IBA 9.2). */
struct shca_bth {
	uint8_t opcode;
	bool solicited, asks_ack;
	uint16_t pkey;
	uint32_t qpn, psn;
	uint32_t length; /* bytes of data in the packet */
};

/* Begins a packet with its BTH. The caller adds extended headers and data. */
void shca_packet_begin(struct shca_packet *packet, const struct shca_bth *bth);
/* Adds the padding, the headers in front of the BTH, and the CRCs. */
void shca_packet_end(struct shca_packet *packet, const struct shca_hca *from,
		     const struct shca_ud_dest *path);

/* Return the place of the next `len` bytes, and add them. */
static inline uint8_t *shca_packet_room(struct shca_packet *packet, uint32_t len)
{
	packet->end += len;
	return packet->bytes + packet->end - len;
}
static inline void shca_packet_put(struct shca_packet *packet, const void *data, uint32_t len)
{
	memcpy(shca_packet_room(packet, len), data, len);
}
static inline void shca_packet_put32(struct shca_packet *packet, uint32_t value)
{
	value = htobe32(value);
	shca_packet_put(packet, &value, sizeof(value));
}
static inline void shca_packet_put64(struct shca_packet *packet, uint64_t value)
{
	value = htobe64(value);
	shca_packet_put(packet, &value, sizeof(value));
}

#endif
