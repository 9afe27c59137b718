/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the library's tables as mdoc, for the manual pages: the parameters between two levels, or
 * the counters, or the levels with a high-water mark. The build runs it; nobody installs it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tupleq/tupleq.h>

enum { LINE_WIDTH = 78 };

/* Prints a word so that mdoc takes it as text. Returns its width. */
static size_t print_word(const char *word, size_t len, bool first)
{
	if (first && (*word == '.' || *word == '\''))
		fputs("\\&", stdout);
	for (size_t i = 0; i < len; i++) {
		if (word[i] == '\\')
			fputs("\\e", stdout);
		else
			putchar(word[i]);
	}
	return len;
}

/* Prints a text in lines of mdoc, filled up to a width. A sentence starts a line of its own. */
static void print_text(const char *text, const char *end)
{
	size_t column = 0;
	bool sentence = false;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && (sentence || column + 1 + len > LINE_WIDTH)) {
			putchar('\n');
			column = 0;
		} else if (column) {
			putchar(' ');
			column++;
		}
		column += print_word(text, len, column == 0);
		sentence = text[len - 1] == '.';
		text += len;
		text += strspn(text, " ");
		sentence = sentence && isupper((unsigned char)*text);
	}
	printf("%s\n", end);
}

static void print_range(const struct tq_param_desc *desc)
{
	switch (desc->type) {
	case TQ_PARAM_BOOL:
		puts("Takes 1 or 0.");
		break;
	case TQ_PARAM_INT:
		printf("Takes %" PRId64 " to %" PRId64 ".\n", desc->min, desc->max);
		break;
	case TQ_PARAM_SIZE:
		printf("Takes %" PRId64 " to %" PRId64 " bytes.\n", desc->min, desc->max);
		break;
	case TQ_PARAM_ENUM:
		fputs("Takes one of\n.Cm ", stdout);
		for (const char *c = desc->choices; *c; c++)
			fputs(*c == '|' ? " , " : (char[]){*c, '\0'}, stdout);
		puts(" .");
		break;
	case TQ_PARAM_STRING:
		printf("Takes %s.\n", desc->choices);
		break;
	}
}

/* Prints a parameter's name, or with a prefix the environment variable of that parameter. */
static void print_name(const char *name, const char *prefix)
{
	printf(".It %s %s", *prefix ? "Ev" : "Cm", prefix);
	for (; *name; name++)
		putchar(*prefix ? toupper((unsigned char)*name) : *name);
	putchar('\n');
}

/* Prints the parameters of the MPI_T levels from `least` to `most`. */
static void print_params(int least, int most, const char *prefix)
{
	const struct tq_param_desc *desc;

	puts(".Bl -tag -width Ds");
	for (unsigned i = 0; (desc = tq_param_desc(i)); i++) {
		if (desc->level < least || desc->level > most)
			continue;
		print_name(desc->name, prefix);
		print_text(desc->help, ".");
		print_range(desc);
		if (*desc->value)
			printf("Default:\n.Cm %s .\n", desc->value);
	}
	puts(".El");
}

static void print_counters(bool levels)
{
	const struct tq_counter_desc *desc;

	puts(".Bl -tag -width Ds");
	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++) {
		if (desc->level != levels)
			continue;
		printf(".It Va %s\n", desc->name);
		print_text(desc->help, ".");
	}
	puts(".El");
}

int main(int argc, char **argv)
{
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "parameters")) {
		print_params(atoi(argv[2]), atoi(argv[3]), argc == 5 ? argv[4] : "");
	} else if (argc == 2 && !strcmp(argv[1], "counters")) {
		print_counters(false);
	} else if (argc == 2 && !strcmp(argv[1], "levels")) {
		print_counters(true);
	} else {
		fprintf(stderr, "usage: %s parameters LEAST MOST [PREFIX] | counters | levels\n",
			argv[0]);
		return 2;
	}
	return ferror(stdout) || fflush(stdout);
}
