/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail.h - exit statuses, and the one way to print an error.
 */
#ifndef SHCA_FAIL_H
#define SHCA_FAIL_H

enum shca_exit {
	SHCA_EXIT_FAILURE = 1,          /* list, stat, reset or options failed */
	SHCA_EXIT_USAGE = 2,            /* wrong command line, or wrong value anywhere */
	SHCA_EXIT_LAUNCHER = 125,       /* run itself failed; CMD was not started */
	SHCA_EXIT_NOT_EXECUTABLE = 126, /* as shells use it */
	SHCA_EXIT_NOT_FOUND = 127,
	SHCA_EXIT_SIGNAL = 128, /* plus the signal that ended CMD */
};

/* Prints one sentence to stderr, and returns status. */
int shca_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
