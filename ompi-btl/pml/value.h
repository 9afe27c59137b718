/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the components' own numeric parameters. These are registered as strings, as the library's
 * are, because Open MPI would read a string that isn't a number as 0 and truncate a number that is
 * too large.
 */
#ifndef TUPLEQ_PML_VALUE_H
#define TUPLEQ_PML_VALUE_H

#include <stdio.h>

#include "common/parse.h"

/* Parses a whole number from 0 to `max`. Returns false for another text, with a sentence in `why`.
 */
static inline bool mca_pml_tupleq_parse_number(const char *parameter, const char *text, int max,
					       int *value, char *why, size_t size)
{
	int64_t number;

	if (!text || parse_int(text, 0, max, &number)) {
		snprintf(why, size, "%s = \"%s\": it takes a whole number from 0 to %d.", parameter,
			 text ? text : "", max);
		return false;
	}
	*value = (int)number;
	return true;
}

#endif
