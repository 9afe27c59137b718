/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - the configuration of a new fabric: command line over environment over file over
 * profile over default.
 */
#ifndef SHCA_SETTINGS_H
#define SHCA_SETTINGS_H

#include <argp.h>
#include <limits.h>

#include "fabric/options.h"

enum shca_settings_origin {
	SHCA_FROM_DEFAULT,
	SHCA_FROM_PROFILE,
	SHCA_FROM_FILE,
	SHCA_FROM_ENV,
	SHCA_FROM_ARGS,
};

struct shca_settings {
	const char *args[SHCA_O_COUNT]; /* from the command line, NULL = not given */
	const char *config_arg;         /* --config */
	char file[PATH_MAX];            /* the file that was read, "" = none */
	enum shca_settings_origin origin[SHCA_O_COUNT];
	struct shca_config config;
};

/* Returns an argp child that takes every option of the table and --config; its input is a struct
 * shca_settings. */
const struct argp *shca_settings_argp(void);
/* Reads all sources into settings->config. Returns 0, or -EINVAL with a sentence in err. */
int shca_settings_load(struct shca_settings *settings, char *err, size_t errlen);
/* Returns the source of a value in a user's words, as "environment". */
const char *shca_settings_origin_name(enum shca_settings_origin origin);

#endif
