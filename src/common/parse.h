/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From text to value, for whatever has parameters or options: libtupleq, the Open MPI components,
 * softhca, the benchmarks. None of this depends on the locale.
 */
#ifndef COMMON_PARSE_H
#define COMMON_PARSE_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parses the whole number at the start of a text: "42", "-1", "0x2a". Returns the rest, or NULL
 * if there is no number or none that fits. */
static inline const char *parse_number_at(const char *text, int64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text + (text[0] == '-');
	char *end;

	/* By itself strtoll would take leading blanks, a second sign, and octal for base 0. */
	if (hex ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return NULL;
	errno = 0;
	*value = strtoll(text, &end, hex ? 16 : 10);
	return errno ? NULL : end;
}

/* Parses a text that is a whole number from `min` to `max`. Returns 0 or -EINVAL. */
static inline int parse_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
	const char *end = parse_number_at(text, value);

	return end && !*end && *value >= min && *value <= max ? 0 : -EINVAL;
}

/* Parses the words with which Open MPI sets a boolean parameter, in either case of letters. Returns
 * 0 or -EINVAL. */
static inline int parse_bool(const char *text, bool *value)
{
	static const char *const words[][2] = {
		{"0", "1"}, {"no", "yes"},          {"n", "y"}, {"off", "on"}, {"false", "true"},
		{"f", "t"}, {"disabled", "enabled"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		*value = !strcasecmp(text, words[i][1]);
		if (*value || !strcasecmp(text, words[i][0]))
			return 0;
	}
	return -EINVAL;
}

/* Returns the index of a text in "a|b|c", or -EINVAL. */
static inline int parse_choice(const char *text, const char *choices)
{
	size_t len = strlen(text);

	for (int i = 0;; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && !strncmp(text, choices, n))
			return i;
		if (!choices[n])
			return -EINVAL;
		choices += n + 1;
	}
}

#endif
