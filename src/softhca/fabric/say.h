/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.h - sentences to the user of a program that runs on the library.
 */
#ifndef SHCA_SAY_H
#define SHCA_SAY_H

#include <stddef.h>

/* Writes a line to the standard error output, behind "softhca: ". Keeps errno, and isn't a
 * cancellation point. Takes 3 KiB of the stack; fprintf() takes 9 if the stream has no buffer. */
void shca_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Stores a sentence in `err`. Returns `rc`. */
int shca_error_text(int rc, char *err, size_t errlen, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
