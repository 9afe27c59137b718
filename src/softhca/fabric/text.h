/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - paths that are put together without printf(), which takes 2 KiB of the stack: messages
 * of threads with little stack come to where these are needed.
 */
#ifndef SHCA_TEXT_H
#define SHCA_TEXT_H

#include <stdint.h>
#include <string.h>

/* Each writes a piece and a NUL, for which the caller has room, and returns the place of the NUL.
 */
static inline char *shca_put_text(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n + 1);
	return to + n;
}

static inline char *shca_put_number(char *to, uint64_t number)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
	return to;
}

#endif
