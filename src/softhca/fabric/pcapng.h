/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng.h - the parts of the format pcapng (draft-ietf-opsawg-pcapng) that captures have: a
 * section, an interface for each HCA of the fabric, and packets.
 */
#ifndef SHCA_PCAPNG_H
#define SHCA_PCAPNG_H

#include "fabric.h"

#define SHCA_PCAPNG_SECTION   0x0a0d0d0au
#define SHCA_PCAPNG_INTERFACE 1u
#define SHCA_PCAPNG_PACKET    6u

/* How an enhanced packet block begins. The packet follows, padded to whole words, and a struct
 * shca_pcapng_packet_end. */
struct shca_pcapng_packet {
	uint32_t type;   /* SHCA_PCAPNG_PACKET */
	uint32_t length; /* bytes of the block */
	uint32_t interface;
	uint32_t time_high, time_low; /* ns */
	uint32_t captured, sent;      /* bytes of the packet */
};

/* The option that says that the interface has sent the packet, the end of options, and the end of
 * the block. */
struct shca_pcapng_packet_end {
	uint16_t flags_code, flags_length;
	uint32_t flags;
	uint16_t end_code, end_length;
	uint32_t length;
};

/*
 * In front of a packet of InfiniBand: an ERF header, because the readers of pcapng know InfiniBand
 * as a record of that format alone (Endace's type 21, as ibdump writes it).
 */
struct shca_erf {
	uint64_t time; /* in 2^-32 s since 1970, the lowest byte first */
	uint8_t type, flags;
	uint16_t record, lost, sent; /* bytes, the highest byte first */
};
void shca_erf_fill(struct shca_erf *erf, uint64_t date, uint32_t bytes);

/* Fills in both ends of a block for `bytes` bytes: a packet that an HCA sent at that date (ns since
 * 1970), with the ERF header if there is one. */
void shca_pcapng_frame(struct shca_pcapng_packet *begin, struct shca_pcapng_packet_end *end,
		       unsigned hca, uint64_t date, uint32_t bytes);
/* Returns the bytes of padding behind a packet. */
static inline uint32_t shca_pcapng_padding(uint32_t bytes)
{
	return -bytes & 3u;
}

/* Writes the blocks in front of all packets. Returns 0 or -errno. */
int shca_pcapng_begin(int fd, const struct shca_fabric *fabric);
/* Writes all bytes. Returns 0 or -errno. */
int shca_pcapng_write(int fd, const void *data, size_t len);

#endif
