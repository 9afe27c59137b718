/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.h - a file that is made of files of the processes of a fabric (fabric/recording.h): a
 * folder for these beside it, and the end of both.
 */
#ifndef SHCA_PARTS_H
#define SHCA_PARTS_H

#include <limits.h>
#include <stdio.h>

struct shca_parts {
	const char *what;      /* "trace"; NULL: there are no parts */
	char folder[PATH_MAX]; /* FILE.parts */
	FILE *out;             /* FILE */
};

/* Makes the folder for the processes' files, and opens the file. Returns 0, or -errno with a
 * sentence in `err`. */
int shca_parts_begin(struct shca_parts *parts, const char *what, const char *file, char *err,
		     size_t errlen);
/* Removes the folder and closes the file of a run that doesn't take place. */
void shca_parts_drop(struct shca_parts *parts);
/* Lets the processes of the fabric in that directory find the folder. Returns 0 or -errno. */
int shca_parts_link(const struct shca_parts *parts, const char *dir, const char *link);
/* Closes the file, and removes the folder unless `rc`, the result of writing the file, is an error.
 * Returns 0, or -errno with a sentence in `err`. */
int shca_parts_end(struct shca_parts *parts, int rc, char *err, size_t errlen);

#endif
