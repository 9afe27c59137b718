/* SPDX-License-Identifier: BSD-3-Clause */
/* The header in front of each message's data, in little-endian byte order. */
#ifndef TF_WIRE_H
#define TF_WIRE_H

#include <endian.h>
#include <stdint.h>

#define TF_HEADER_DATA 1u /* the message has data for the completion of its receive */

struct tf_header {
	uint32_t endpoint; /* the number of the sender's endpoint */
	uint32_t flags;    /* TF_HEADER_* */
	uint64_t data;
};
_Static_assert(sizeof(struct tf_header) == 16, "the header has no gaps");

#endif
