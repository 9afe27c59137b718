/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd.h - the subcommands of softhca.
 */
#ifndef SHCA_CMD_H
#define SHCA_CMD_H

/* Runs a subcommand; argv[0] is its whole name ("softhca run"). Returns the exit status. */
int shca_cmd_run(int argc, char **argv);
int shca_cmd_list(int argc, char **argv);
int shca_cmd_stat(int argc, char **argv);
int shca_cmd_reset(int argc, char **argv);
int shca_cmd_options(int argc, char **argv);

#endif
