/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc.h - the CRCs of packets (IBA 7.8).
 */
#ifndef SHCA_CRC_H
#define SHCA_CRC_H

#include <stdint.h>

#define SHCA_CRC_BEGIN 0xffffffffu

/* Adds bytes to an ICRC, which begins as SHCA_CRC_BEGIN. Its complement is sent, the lowest byte
 * first. */
uint32_t shca_crc_invariant(uint32_t crc, const void *data, uint32_t len);
/* Returns the VCRC of a packet, which is sent with the lowest byte first. */
uint16_t shca_crc_variant(const void *data, uint32_t len);

#endif
