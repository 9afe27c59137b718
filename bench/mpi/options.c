/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - see options.h. */
#define _GNU_SOURCE 1 /* asprintf */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"

long parse_number(const char *option, const char *text, long min, long max)
{
	int64_t value;

	if (parse_int(text, min, max, &value))
		die("--%s wants a number from %ld to %ld, not \"%s\"", option, min, max, text);
	return value;
}

error_t parse_number_option(const struct number_option *table, int key, const char *text)
{
	for (const struct number_option *option = table; option->key; option++) {
		if (option->key != key)
			continue;
		*option->value = parse_number(option->name, text, 1, option->max);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

unsigned parse_numbers(const char *option, const char *text, long min, long max, long *number,
		       unsigned most)
{
	char *list = strdup(text), *rest = list, *word;
	unsigned n = 0;

	if (!list)
		die("no memory for the numbers of --%s", option);
	while ((word = strsep(&rest, ","))) {
		if (n == most)
			die("--%s takes no more than %u numbers", option, most);
		number[n++] = parse_number(option, word, min, max);
	}
	free(list);
	return n;
}

/* Returns a text of --help with the default behind it, in memory that argp frees. */
static char *with_default(const char *text, const char *what, long value)
{
	char *help;

	if (asprintf(&help, "%s%s%s; %ld", text, *what ? " " : "", what, value) < 0)
		die("no memory for the help");
	return help;
}

/* ---- sizes ---- */

static const struct argp_option sizes_options[] = {
	{"sizes", 's', "LIST", 0,
	 "message sizes, as 1,8K,64K-4M (A-B stands for A, 2A, 4A, ... up to B)", 0},
	{0},
};

static error_t sizes_option(int key, char *arg, struct argp_state *state)
{
	const struct program *program = state->input;

	if (key != 's')
		return ARGP_ERR_UNKNOWN;
	pair_sizes(program->pair, arg);
	return 0;
}

static char *sizes_help(int key, const char *text, void *input)
{
	const struct program *program = input;
	char *help;

	if (key != 's' || !program)
		return (char *)text;
	if (asprintf(&help, "%s; %s", text, program->sizes) < 0)
		die("no memory for the help");
	return help;
}

static const struct argp sizes_argp = {
	.options = sizes_options, .parser = sizes_option, .help_filter = sizes_help};

/* ---- effort ---- */

static const struct argp_option effort_options[] = {
	{"ms", 't', "MS", 0, "time for one measurement", 0},
	{"step-ms", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"least", 'l', "N", 0, "but at least N", 0},
	{"most", 'm', "N", 0, "and at most N", 0},
	{"warm-up", 'w', "N", 0, "before the first counts, N", 0},
	{0},
};

static error_t effort_option(int key, char *arg, struct argp_state *state)
{
	struct effort *effort = state->input;
	const struct number_option numbers[] = {{'t', "ms", 100000, &effort->ms},
						{'l', "least", 1000000, &effort->least},
						{'m', "most", 1000000, &effort->most},
						{'w', "warm-up", 1000000, &effort->warm_up},
						{0}};

	return parse_number_option(numbers, key, arg);
}

static char *effort_help(int key, const char *text, void *input)
{
	const struct effort *effort = input;

	if (!effort)
		return (char *)text;
	switch (key) {
	case 't':
		return with_default(text, "", effort->ms);
	case 'l':
		return with_default(text, effort->what, effort->least);
	case 'm':
		return with_default(text, "", effort->most);
	case 'w':
		return with_default(text, effort->what, effort->warm_up);
	default:
		return (char *)text;
	}
}

static const struct argp effort_argp = {
	.options = effort_options, .parser = effort_option, .help_filter = effort_help};

double *effort_samples(const struct effort *effort)
{
	return pair_samples(effort->most > effort->warm_up ? effort->most : effort->warm_up);
}

long effort_agree(const struct effort *effort, double each_us)
{
	return pair_agree(pair_repeats(each_us, effort->ms, effort->least, effort->most));
}

/* ---- samples; sleep ---- */

enum { KEY_SAMPLES = 'r', KEY_SLEEP = 'z' };

static const struct argp_option samples_options[] = {
	{"samples", KEY_SAMPLES, NULL, 0, "print the time of each repeat too, sorted", 0},
	{0},
};

static const struct argp_option sleep_options[] = {
	{"sleep", KEY_SLEEP, NULL, 0,
	 "work is a sleep, for virtual time that counts no CPU time (softhca run --clock-cpu 0)",
	 0},
	{0},
};

static error_t flag_option(int key, char *arg, struct argp_state *state)
{
	bool *flag = state->input;

	(void)arg;
	if (key != KEY_SAMPLES && key != KEY_SLEEP)
		return ARGP_ERR_UNKNOWN;
	*flag = true;
	return 0;
}

static const struct argp samples_argp = {.options = samples_options, .parser = flag_option};
static const struct argp sleep_argp = {.options = sleep_options, .parser = flag_option};

/* ---- a program ---- */

struct parse {
	const struct program *program;
	void *settings;
};

/* Gives each set of options its input, in the order of options_parse(). */
static error_t start(int key, char *arg, struct argp_state *state)
{
	const struct parse *parse = state->input;
	const struct program *program = parse->program;
	unsigned n = 0;

	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[n++] = parse->settings;
	if (program->sizes)
		state->child_inputs[n++] = (void *)program;
	if (program->effort)
		state->child_inputs[n++] = program->effort;
	if (program->samples)
		state->child_inputs[n++] = program->samples;
	if (program->sleep)
		state->child_inputs[n++] = program->sleep;
	return 0;
}

void options_parse(const struct program *program, int argc, char **argv, void *settings)
{
	const struct argp own = {.options = program->options, .parser = program->parser};
	struct argp_child children[6] = {{.argp = &own}};
	const struct argp argp = {.parser = start, .doc = program->doc, .children = children};
	struct parse parse = {program, settings};
	unsigned n = 1;

	if (program->sizes) {
		pair_sizes(program->pair, program->sizes);
		children[n++].argp = &sizes_argp;
	}
	if (program->effort)
		children[n++].argp = &effort_argp;
	if (program->samples)
		children[n++].argp = &samples_argp;
	if (program->sleep)
		children[n++].argp = &sleep_argp;
	argp_parse(&argp, argc, argv, 0, NULL, &parse);
}

void options_run(const struct program *program, int argc, char **argv, void *settings)
{
	struct job_pair *pair = program->pair;

	pair_start(pair, &argc, &argv);
	options_parse(program, argc, argv, settings);
	pair_allocate(pair, program->ranks);
	if (program->begin)
		program->begin(settings);
	for (unsigned i = 0; i < pair->nsizes; i++)
		program->run(settings, pair->size[i]);
	if (program->end)
		program->end(settings);
	pair_end(pair);
}
