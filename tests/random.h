/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h - a sequence of random numbers, which depends on its first state alone (splitmix64: any
 * state is as good as another).
 */
#ifndef T_RANDOM_H
#define T_RANDOM_H

#include <stdint.h>

/* Returns the next number of the sequence. */
static inline uint64_t t_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#endif
