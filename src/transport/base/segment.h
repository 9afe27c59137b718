/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, for names that no other process has: those of segments, XRC domains, endpoints.
 * segment.c also defines tq_segment_*() of <tupleq/tupleq.h>. */
#ifndef TQ_BASE_SEGMENT_H
#define TQ_BASE_SEGMENT_H

#include <stdint.h>

/* Returns 64 random bits. */
uint64_t tq_random(void);

#endif
