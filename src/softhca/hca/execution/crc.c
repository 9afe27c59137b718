/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc.c - CRCs by table, with the lowest bit of each byte first.
 */
#include "crc.h"

#include <pthread.h>

#define INVARIANT 0xedb88320u /* x^32 + x^26 + ... + 1 (0x04c11db7), mirrored */
#define VARIANT   0xd008u     /* x^16 + x^12 + x^3 + x + 1 (0x100b), mirrored */

static uint32_t invariant[256];
static uint16_t variant[256];

static void make_tables(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint32_t in = byte, var = byte;

		for (unsigned bit = 0; bit < 8; bit++) {
			in = in >> 1 ^ (in & 1 ? INVARIANT : 0);
			var = var >> 1 ^ (var & 1 ? VARIANT : 0);
		}
		invariant[byte] = in;
		variant[byte] = (uint16_t)var;
	}
}

static void need_tables(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_tables);
}

uint32_t shca_crc_invariant(uint32_t crc, const void *data, uint32_t len)
{
	const uint8_t *bytes = data;

	need_tables();
	for (uint32_t i = 0; i < len; i++)
		crc = crc >> 8 ^ invariant[(crc ^ bytes[i]) & 0xff];
	return crc;
}

uint16_t shca_crc_variant(const void *data, uint32_t len)
{
	const uint8_t *bytes = data;
	uint16_t crc = 0xffff;

	need_tables();
	for (uint32_t i = 0; i < len; i++)
		crc = (uint16_t)(crc >> 8 ^ variant[(crc ^ bytes[i]) & 0xff]);
	return (uint16_t)~crc;
}
