/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the components' own parameters. They are texts to Open MPI, as the library's are: what
 * isn't a number would be 0 to it, and what doesn't fit another number.
 */
#ifndef TUPLEQ_PML_VALUE_H
#define TUPLEQ_PML_VALUE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Takes a whole number from 0 to `max`. Returns false, with a sentence in `why`, for another text.
 */
static inline bool mca_pml_tupleq_value(const char *parameter, const char *text, int max,
					int *value, char *why, size_t size)
{
	char *end;
	long n;

	errno = 0;
	n = text ? strtol(text, &end, 10) : 0;
	if (!text || end == text || *end || errno || n < 0 || n > max) {
		snprintf(why, size, "%s = \"%s\": it takes a whole number from 0 to %d", parameter,
			 text ? text : "", max);
		return false;
	}
	*value = (int)n;
	return true;
}

#endif
