/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command lines of the benchmarks: the options that several of them have, with the
 * defaults in --help, and numbers.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <argp.h>

#include "pair.h"

/* How long a thing is measured: for a time, but at least and at most so often, after a warm-up. */
struct effort {
	const char *what; /* the things, in the plural, for --help */
	long ms, least, most, warm_up;
};

/* A benchmark, as its command line sees it. */
struct program {
	const char *doc;
	const struct argp_option *options; /* of this program alone */
	argp_parser_t parser;              /* of these; its input is the settings */
	struct pair *pair;                 /* NULL, or where --sizes puts the message sizes */
	const char *sizes;                 /* the default of --sizes */
	struct effort *effort; /* NULL, or where --ms, --least, --most, --warm-up are put; has the
				  defaults */
};

/* Sets the defaults and parses the command line; ends the program if that is wrong. */
void options_parse(const struct program *program, int argc, char **argv, void *settings);

/* Returns the number that the text of an option is; ends the program if it is none, or is out of
 * range. */
long parse_number(const char *option, const char *text, long min, long max);

/* An option whose argument is a number from 1 to max. */
struct number_option {
	int key;          /* 0 ends a table of them */
	const char *name; /* for errors */
	long max;
	long *value;
};

/* Parses an option of the table. Returns ARGP_ERR_UNKNOWN if the key is not there. */
error_t parse_number_option(const struct number_option *table, int key, const char *text);

/* Parses "0,64,1024" into at most `most` numbers, and returns how many there are. */
unsigned parse_numbers(const char *option, const char *text, long min, long max, long *number,
		       unsigned most);

#endif
