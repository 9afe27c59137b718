/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_options.c - softhca options: the table of options, with the values that a run started now
 * would use.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "cmd.h"
#include "fail.h"
#include "render.h"
#include "settings.h"

enum { KEY_MAN = 1 };

struct options_args {
	struct shca_settings settings;
	bool json, man;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options_args *args = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->settings;
		return 0;
	case 'j':
		args->json = true;
		return 0;
	case KEY_MAN:
		args->man = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *accepted(enum shca_opt opt)
{
	return shca_opts[opt].type == SHCA_OPT_BOOL ? "yes|no" : shca_opts[opt].unit;
}

/* Prints mdoc text: no line may start with a control character, and a backslash starts an
 * escape. */
static void man_text(const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", stdout);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", stdout);
		else
			putchar(*s);
	}
}

/* Prints the items of a manual page, for @OPTIONS@ in softhca.1.in. */
static void print_man(void)
{
	char env[64];

	for (int o = 0; o < SHCA_O_COUNT; o++) {
		const struct shca_opt_desc *desc = &shca_opts[o];

		if (desc->group) {
			if (o)
				puts(".El");
			printf(".Ss %s\n.Bl -tag -width Ds\n", desc->group);
		}
		printf(".It Fl \\-%s Ns = Ns Ar ", desc->name);
		man_text(accepted(o));
		putchar('\n');
		man_text(desc->help);
		puts(".");
		if (*desc->def)
			printf("Default:\n.Cm %s ;\n", desc->def);
		shca_opt_env_name(o, env, sizeof(env));
		printf("environment:\n.Ev %s .\n", env);
	}
	puts(".El");
}

static json_t *option_row(const struct shca_settings *settings, enum shca_opt opt)
{
	char value[SHCA_OPT_TEXT_LEN], env[64];
	json_t *row = json_object();

	shca_config_format(&settings->config, opt, value, sizeof(value));
	shca_opt_env_name(opt, env, sizeof(env));
	json_object_set_new(row, "name", json_string(shca_opts[opt].name));
	json_object_set_new(row, "value", shca_json_text(value));
	json_object_set_new(row, "default", json_string(shca_opts[opt].def));
	json_object_set_new(row, "accepts", json_string(accepted(opt)));
	json_object_set_new(row, "from",
			    json_string(shca_settings_origin_name(settings->origin[opt])));
	json_object_set_new(row, "environment", json_string(env));
	json_object_set_new(row, "help", json_string(shca_opts[opt].help));
	return row;
}

static void print_table(const struct shca_settings *settings, json_t *rows)
{
	static const struct shca_column columns[] = {
		{"OPTION", "name", SHCA_COLUMN_TEXT, NULL},
		{"VALUE", "value", SHCA_COLUMN_TEXT, NULL},
		{"FROM", "from", SHCA_COLUMN_TEXT, NULL},
		{"DEFAULT", "default", SHCA_COLUMN_TEXT, NULL},
		{"ACCEPTS", "accepts", SHCA_COLUMN_TEXT, NULL},
	};

	shca_render_table(stdout, rows, columns, sizeof(columns) / sizeof(columns[0]));
	if (settings->file[0])
		printf("\nFile: %s\n", settings->file);
}

int shca_cmd_options(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "print JSON", -1},
		{"man", KEY_MAN, NULL, OPTION_HIDDEN, "", -1},
		{0},
	};
	struct argp_child children[] = {{shca_settings_argp(), 0, NULL, 0}, {0}};
	const struct argp argp = {.options = options,
				  .parser = parse,
				  .doc = "Shows every option, the value that softhca run would "
					 "give it now, and where that value comes from.",
				  .children = children};
	static struct options_args args;
	char err[1024];
	json_t *rows;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.man) {
		print_man();
		return 0;
	}
	if (shca_settings_load(&args.settings, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_USAGE, "%s", err);
	rows = json_array();
	for (int o = 0; o < SHCA_O_COUNT; o++)
		json_array_append_new(rows, option_row(&args.settings, o));
	if (args.json)
		shca_render_json(stdout, rows, false);
	else
		print_table(&args.settings, rows);
	json_decref(rows);
	return 0;
}
