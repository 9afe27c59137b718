/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd.h - the subcommands of softhca, and their exit statuses.
 */
#ifndef SHCA_CMD_H
#define SHCA_CMD_H

#include <stdbool.h>
#include <stdio.h>

enum shca_exit {
	SHCA_EXIT_FAILURE = 1,          /* list, stat, reset or options failed */
	SHCA_EXIT_USAGE = 2,            /* wrong command line, or wrong value anywhere */
	SHCA_EXIT_LAUNCHER = 125,       /* run itself failed; CMD was not started */
	SHCA_EXIT_NOT_EXECUTABLE = 126, /* as shells use it */
	SHCA_EXIT_NOT_FOUND = 127,
	SHCA_EXIT_SIGNAL = 128, /* plus the signal that ended CMD */
};

/* Runs a subcommand; argv[0] is its whole name ("softhca run"). Returns the exit status. */
int shca_cmd_run(int argc, char **argv);
int shca_cmd_list(int argc, char **argv);
int shca_cmd_stat(int argc, char **argv);
int shca_cmd_reset(int argc, char **argv);
int shca_cmd_options(int argc, char **argv);

/* Prints one sentence to stderr, and returns status. */
int shca_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
