/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapng.c - writing the blocks.
 */
#include "pcapng.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "address.h"

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET    1u
#define LINK_ERF         197u

/* Codes of options. */
#define O_END         0u
#define O_APPLICATION 4u /* of a section */
#define O_NAME        2u /* of an interface */
#define O_DESCRIPTION 3u
#define O_RESOLUTION  9u
#define O_FLAGS       2u /* of a packet */
#define OUTBOUND      2u

#define ERF_INFINIBAND 21u
#define ERF_VARIES     4u /* the flag that records differ in length */

#define BLOCK_MAX 512u

static_assert(sizeof(struct shca_pcapng_packet) == 28 &&
		      sizeof(struct shca_pcapng_packet_end) == 16 && sizeof(struct shca_erf) == 16,
	      "these are written as they are");

/* A block in the making. */
struct block {
	uint8_t bytes[BLOCK_MAX];
	uint32_t used;
};

static void put(struct block *block, const void *data, uint32_t len)
{
	memcpy(block->bytes + block->used, data, len);
	block->used += len;
	memset(block->bytes + block->used, 0, shca_pcapng_padding(len));
	block->used += shca_pcapng_padding(len);
}

static void put_word(struct block *block, uint32_t word)
{
	put(block, &word, sizeof(word));
}

static void put_option(struct block *block, uint16_t code, const void *data, uint16_t len)
{
	const uint16_t head[] = {code, len};

	put(block, head, sizeof(head));
	put(block, data, len);
}

static void put_text(struct block *block, uint16_t code, const char *text)
{
	put_option(block, code, text, (uint16_t)strlen(text));
}

static void begin_block(struct block *block, uint32_t type)
{
	block->used = 0;
	put_word(block, type);
	put_word(block, 0);
}

static int end_block(struct block *block, int fd)
{
	uint32_t len;

	put_option(block, O_END, "", 0);
	len = block->used + (uint32_t)sizeof(len);
	put_word(block, len);
	memcpy(block->bytes + sizeof(len), &len, sizeof(len));
	return shca_pcapng_write(fd, block->bytes, len);
}

static int write_section(int fd)
{
	static const uint16_t version[] = {1, 0};
	static const int64_t length = -1; /* not known */
	struct block block;

	begin_block(&block, SHCA_PCAPNG_SECTION);
	put_word(&block, BYTE_ORDER_MAGIC);
	put(&block, version, sizeof(version));
	put(&block, &length, sizeof(length));
	put_text(&block, O_APPLICATION, "softhca " PACKAGE_VERSION);
	return end_block(&block, fd);
}

static int write_interface(int fd, const struct shca_fabric *fabric, const struct shca_hca *hca)
{
	const uint16_t link[] = {shca_is_ethernet(fabric->hdr) ? LINK_ETHERNET : LINK_ERF, 0};
	const uint8_t nanoseconds = 9; /* 10^-9 s */
	struct block block;
	char text[128];

	begin_block(&block, SHCA_PCAPNG_INTERFACE);
	put(&block, link, sizeof(link));
	put_word(&block, 0); /* whole packets */
	snprintf(text, sizeof(text), "node%u/%.*s", hca->node, SHCA_NAME_LEN, hca->name);
	put_text(&block, O_NAME, text);
	snprintf(text, sizeof(text), "%.*s of node %u, GUID %016llx", SHCA_NAME_LEN, hca->name,
		 hca->node, (unsigned long long)hca->guid);
	put_text(&block, O_DESCRIPTION, text);
	put_option(&block, O_RESOLUTION, &nanoseconds, sizeof(nanoseconds));
	return end_block(&block, fd);
}

int shca_pcapng_begin(int fd, const struct shca_fabric *fabric)
{
	int rc = write_section(fd);

	for (unsigned i = 0; !rc && i < fabric->hdr->nhcas; i++)
		rc = write_interface(fd, fabric, &fabric->hdr->hcas[i]);
	return rc;
}

int shca_pcapng_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

void shca_pcapng_frame(struct shca_pcapng_packet *begin, struct shca_pcapng_packet_end *end,
		       unsigned hca, uint64_t date, uint32_t bytes)
{
	uint32_t length =
		(uint32_t)(sizeof(*begin) + bytes + shca_pcapng_padding(bytes) + sizeof(*end));

	*begin = (struct shca_pcapng_packet){
		.type = SHCA_PCAPNG_PACKET,
		.length = length,
		.interface = hca,
		.time_high = (uint32_t)(date >> 32),
		.time_low = (uint32_t)date,
		.captured = bytes,
		.sent = bytes,
	};
	*end = (struct shca_pcapng_packet_end){
		.flags_code = O_FLAGS,
		.flags_length = sizeof(end->flags),
		.flags = OUTBOUND,
		.length = length,
	};
}

void shca_erf_fill(struct shca_erf *erf, uint64_t date, uint32_t bytes)
{
	const uint64_t second = 1000000000u;

	*erf = (struct shca_erf){
		.time = htole64(date / second << 32 | (date % second << 32) / second),
		.type = ERF_INFINIBAND,
		.flags = ERF_VARIES,
		.record = htobe16((uint16_t)(sizeof(*erf) + bytes)),
		.sent = htobe16((uint16_t)bytes),
	};
}
