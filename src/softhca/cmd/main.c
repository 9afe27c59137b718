/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - softhca: finding the subcommand.
 */
#define _GNU_SOURCE 1
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "cm/life.h"
#include "cmd.h"
#include "fail.h"

static const struct {
	const char *name;
	const char *full; /* the command's name in messages of argp */
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", "softhca run", shca_cmd_run, "run a command in a fabric of its own"},
	{"list", "softhca list", shca_cmd_list, "show the fabrics of this user"},
	{"stat", "softhca stat", shca_cmd_stat, "show the objects and counters of a fabric"},
	{"reset", "softhca reset", shca_cmd_reset, "set the counters of a fabric to zero"},
	{"options", "softhca options", shca_cmd_options,
	 "show every option, its value and where that comes from"},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
	fputs("Usage: softhca COMMAND [OPTION...]\n"
	      "A software InfiniBand adapter on which unmodified verbs programs run.\n\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n\"softhca COMMAND --help\" tells more about one of them, softhca(1) about all.\n",
	      out);
}

static int dispatch(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0) {
			argv[0] = (char *)commands[i].full;
			return commands[i].run(argc, argv);
		}
	}
	return shca_fail(SHCA_EXIT_USAGE, "There is no command \"%s\": see softhca --help.", name);
}

int main(int argc, char **argv)
{
	char *help[] = {NULL, (char *)"--help", NULL};
	const char *name = argc > 1 ? argv[1] : NULL;

	argp_err_exit_status = SHCA_EXIT_USAGE;
	shca_life_watch();
	if (!name) {
		usage(stderr);
		return SHCA_EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("softhca " PACKAGE_VERSION);
		return 0;
	}
	if (strcmp(name, "help") == 0 && argc > 2)
		return dispatch(argv[2], 2, help);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0 ||
	    strcmp(name, "help") == 0) {
		usage(stdout);
		return 0;
	}
	return dispatch(name, argc - 1, argv + 1);
}
