/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, for names that no other process has. */
#ifndef TQ_BASE_RANDOM_H
#define TQ_BASE_RANDOM_H

#include <stdint.h>

/* Returns 64 random bits. */
uint64_t tq_random(void);

#endif
