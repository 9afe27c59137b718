/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the frame of a benchmark: its command line, with the options that several benchmarks
 * have and their defaults in --help, and its measurement of one size after the other.
 */
#ifndef BENCH_MPI_OPTIONS_H
#define BENCH_MPI_OPTIONS_H

#include <argp.h>

#include "pair.h"

/* The repeats of a measurement: as many as fit into a time, within limits, after a warm-up. */
struct effort {
	const char *what; /* the name of the repeats, in the plural, for --help */
	long ms, least, most, warm_up;
};

/* Returns memory for as many timings as a warm-up or a measurement has; free() takes it back. */
double *effort_samples(const struct effort *effort);

/* Returns the number of repeats that a measurement has if each takes `each_us`; rank 0 decides. */
long effort_agree(const struct effort *effort, double each_us);

struct program {
	const char *doc;
	int ranks;                         /* the number of ranks it is for; 0: any */
	const struct argp_option *options; /* the options of this program alone; may be NULL */
	argp_parser_t parser;              /* their parser; its input is the settings */
	struct job_pair *pair;
	const char *sizes;     /* the default of --sizes; NULL: there is no such option */
	struct effort *effort; /* the defaults and the result of --ms, --least, --most, --warm-up;
				  NULL: there are no such options */
	bool *samples;         /* set by --samples; NULL: there is no such option */
	bool *sleep;           /* set by --sleep; NULL: there is no such option */

	/* Prepares the measurements, if it isn't NULL. */
	void (*begin)(void *settings);
	/* Measures one size, and prints a JSON object for each result. */
	void (*run)(const void *settings, size_t bytes);
	/* Frees the objects that begin() made, if it isn't NULL. */
	void (*end)(void *settings);
};

/*
 * Starts MPI, parses the command line, measures each size and ends MPI. A wrong command line, or
 * number of ranks, ends the program.
 */
void options_run(const struct program *program, int argc, char **argv, void *settings);

/* Sets the default sizes and parses the command line. A wrong command line ends the program. */
void options_parse(const struct program *program, int argc, char **argv, void *settings);

/*
 * Returns the number that the text of an option stands for. Ends the program if the text is no
 * number, or the number is out of range.
 */
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

/* Parses "0,64,1024" into at most `most` numbers. Returns how many there are. Ends the program if
 * there are more, or one is bad. */
unsigned parse_numbers(const char *option, const char *text, long min, long max, long *number,
		       unsigned most);

#endif
