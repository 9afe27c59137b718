/* SPDX-License-Identifier: BSD-3-Clause */
/* A fuzzer's input as a stream of decisions. Behind its end all decisions are 0. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t input_byte(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* Returns a number from 0 to n - 1; n is 1 to 256. */
static inline unsigned input_below(struct input *in, unsigned n)
{
	return input_byte(in) % n;
}

static inline void input_bytes(struct input *in, void *to, size_t n)
{
	size_t have = n < in->left ? n : in->left;

	memset(to, 0, n);
	if (have)
		memcpy(to, in->at, have);
	in->at += have;
	in->left -= have;
}

/* Returns a number. Likely ones take one byte of input: small numbers of either sign, powers of
 * two. Others take five. */
static inline uint32_t input_number(struct input *in)
{
	uint8_t b = input_byte(in);
	uint32_t any;

	if (b < 160)
		return b;
	if (b < 208)
		return (uint32_t) - (b - 159);
	if (b < 240)
		return UINT32_C(1) << (b - 208);
	input_bytes(in, &any, sizeof(any));
	return any;
}

/* As input_number(), for 64 bits. */
static inline uint64_t input_long(struct input *in)
{
	uint64_t low = input_number(in);

	return low > 1000 ? low | (uint64_t)input_number(in) << 32 : low;
}

/* Returns one of the arguments. */
#define INPUT_ONE_OF(in, ...)                          \
	(((const int64_t[]){__VA_ARGS__})[input_below( \
		(in), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

#endif
