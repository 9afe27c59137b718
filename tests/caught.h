/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caught.h - captures the standard error of this process, for tests of messages.
 */
#ifndef T_CAUGHT_H
#define T_CAUGHT_H

#include <stdio.h>
#include <unistd.h>

#include "expect.h"

struct t_caught {
	FILE *file;
	int saved;       /* a descriptor of the former standard error */
	char text[4096]; /* after t_caught_end(): the first bytes that were written */
};

/* Redirects standard error to a file. */
static inline void t_catch(struct t_caught *caught)
{
	caught->file = tmpfile();
	caught->saved = dup(STDERR_FILENO);
	t_true(caught->file && caught->saved >= 0 && !fflush(stderr) &&
		       dup2(fileno(caught->file), STDERR_FILENO) >= 0,
	       "standard error can't be redirected");
}

/* Ends the redirection. Returns the text. */
static inline const char *t_caught_end(struct t_caught *caught)
{
	t_true(!fflush(stderr) && dup2(caught->saved, STDERR_FILENO) >= 0,
	       "standard error can't be restored");
	close(caught->saved);
	rewind(caught->file);
	caught->text[fread(caught->text, 1, sizeof(caught->text) - 1, caught->file)] = '\0';
	fclose(caught->file);
	return caught->text;
}

#endif
