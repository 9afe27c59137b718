/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - one table of options and the ways to set them: the argp options made of it, and the
 * order of precedence.
 */
#define _GNU_SOURCE 1
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiles.h"

#define KEY_OPTION 0x1000 /* + enum shca_opt; beyond every character */
#define KEY_CONFIG 0x2000

#define SYSTEM_CONFIG "/etc/softhca.conf"

/* Returns the placeholder of a value: COUNT for "count"; the words of a choice stay as they are
 * typed. */
static char *argument_name(enum shca_opt opt)
{
	const struct shca_opt_desc *desc = &shca_opts[opt];
	char *name = strdup(desc->type == SHCA_OPT_BOOL ? "yes|no" : desc->unit);

	if (name && !strchr(name, '|')) {
		for (char *p = name; *p; p++)
			*p = (char)toupper((unsigned char)*p);
	}
	return name;
}

static char *option_doc(enum shca_opt opt)
{
	const char *def = shca_opts[opt].def;
	char *doc;

	if (asprintf(&doc, "%s (default: %s)", shca_opts[opt].help, *def ? def : "empty") < 0)
		return NULL;
	return doc;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct shca_settings *settings = state->input;

	if (key >= KEY_OPTION && key < KEY_OPTION + SHCA_O_COUNT) {
		settings->args[key - KEY_OPTION] = arg;
		return 0;
	}
	if (key == KEY_CONFIG) {
		settings->config_arg = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp *shca_settings_argp(void)
{
	/* A title may precede each option; --config and the end come on top. */
	static struct argp_option options[2 * SHCA_O_COUNT + 2];
	static const struct argp argp = {.options = options, .parser = parse_option};
	struct argp_option *option = options;
	int group = 1;

	*option++ =
		(struct argp_option){"config",
				     KEY_CONFIG,
				     "FILE",
				     0,
				     "read options from FILE, as lines of the form name = value",
				     0};
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		if (shca_opts[o].group) {
			group++;
			*option++ = (struct argp_option){.doc = shca_opts[o].group, .group = group};
		}
		*option++ =
			(struct argp_option){shca_opts[o].name, KEY_OPTION + o, argument_name(o), 0,
					     option_doc(o),     group};
	}
	*option = (struct argp_option){0};
	return &argp;
}

/* Finds the file: the one that the user named, whose absence is an error, or else the first of
 * the usual places that is there. */
static void find_file(struct shca_settings *settings)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
	const char *env = getenv("SOFTHCA_CONFIG");

	if (!settings->config_arg && env && *env)
		settings->config_arg = env;
	if (settings->config_arg) {
		snprintf(settings->file, sizeof(settings->file), "%s", settings->config_arg);
		return;
	}
	if (xdg && *xdg)
		snprintf(settings->file, sizeof(settings->file), "%s/softhca.conf", xdg);
	else if (home && *home)
		snprintf(settings->file, sizeof(settings->file), "%s/.config/softhca.conf", home);
	if (settings->file[0] && access(settings->file, F_OK) == 0)
		return;
	snprintf(settings->file, sizeof(settings->file), "%s", SYSTEM_CONFIG);
	if (access(settings->file, F_OK))
		settings->file[0] = '\0';
}

/*
 * Reads a file, and takes the options from it that have a default now. Each text is set to a
 * character first that no value can start with, so that values from the file are told from equal
 * defaults.
 */
static int load_file(struct shca_settings *settings, enum shca_settings_origin origin,
		     const char *path, char *err, size_t errlen)
{
	struct shca_config file = settings->config;
	int rc;

	for (int o = 0; o < SHCA_O_COUNT; o++)
		file.text[o][0] = '\1';
	if (origin == SHCA_FROM_PROFILE)
		rc = shca_config_load_profile(&file, path, err, errlen);
	else
		rc = shca_config_load_file(&file, path, err, errlen);
	for (int o = 0; !rc && o < SHCA_O_COUNT; o++) {
		if (file.text[o][0] == '\1' || settings->origin[o] != SHCA_FROM_DEFAULT)
			continue;
		settings->config.value[o] = file.value[o];
		memcpy(settings->config.text[o], file.text[o], sizeof(file.text[o]));
		settings->origin[o] = origin;
	}
	return rc;
}

/* Reads the profile, after all other sources, because any of them may name the profile, and wins
 * against it. */
static int load_profile(struct shca_settings *settings, char *err, size_t errlen)
{
	const char *name = settings->config.text[SHCA_O_PROFILE];
	char path[PATH_MAX];
	int rc;

	if (!*name)
		return 0;
	rc = shca_profiles_find(name, path, sizeof(path), err, errlen);
	return rc ? rc : load_file(settings, SHCA_FROM_PROFILE, path, err, errlen);
}

static void note_environment(struct shca_settings *settings)
{
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		char name[64];
		const char *value;

		shca_opt_env_name(o, name, sizeof(name));
		value = getenv(name);
		if (value && *value)
			settings->origin[o] = SHCA_FROM_ENV;
	}
}

static int load_args(struct shca_settings *settings, char *err, size_t errlen)
{
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		char source[64];
		int rc;

		if (!settings->args[o])
			continue;
		snprintf(source, sizeof(source), "--%s", shca_opts[o].name);
		rc = shca_config_set(&settings->config, o, settings->args[o], source, err, errlen);
		if (rc)
			return rc;
		settings->origin[o] = SHCA_FROM_ARGS;
	}
	return 0;
}

int shca_settings_load(struct shca_settings *settings, char *err, size_t errlen)
{
	int rc = shca_config_defaults(&settings->config);

	if (rc) {
		snprintf(err, errlen, "A default in the table of options is out of its own range.");
		return rc;
	}
	find_file(settings);
	if (settings->file[0])
		rc = load_file(settings, SHCA_FROM_FILE, settings->file, err, errlen);
	if (!rc)
		rc = shca_config_load_env(&settings->config, err, errlen);
	if (rc)
		return rc;
	note_environment(settings);
	rc = load_args(settings, err, errlen);
	if (!rc)
		rc = load_profile(settings, err, errlen);
	return rc ? rc : shca_config_finish(&settings->config, err, errlen);
}

const char *shca_settings_origin_name(enum shca_settings_origin origin)
{
	static const char *const names[] = {"default", "profile", "file", "environment",
					    "command line"};

	return names[origin];
}
