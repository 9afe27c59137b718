/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options_file.c - files of options, as lines of the form "name = value": configuration files and
 * profiles of adapters.
 */
#define _GNU_SOURCE 1
#include "common/parse.h"
#include "options.h"
#include "options_parse.h"

/* The longest line, which is a comment, because values are short. */
#define LINE_ROOM 512

/* The line that is read. */
struct source {
	char *place; /* file and number */
	bool profile;
};

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

/* A # starts a comment at the start of a line or behind a blank. */
static void cut_comment(char *s)
{
	for (char *p = s; *p; p++) {
		if (*p == '#' && (p == s || isspace((unsigned char)p[-1]))) {
			*p = '\0';
			return;
		}
	}
}

/* Returns the value, or the largest one of the option here, written into buf, if a limit of an
 * adapter is above that. */
static const char *lower_limit(enum shca_opt opt, const char *value, char *buf, size_t len)
{
	const struct shca_opt_desc *desc = &shca_opts[opt];
	int64_t v;
	int rc = -EINVAL;

	if (strncmp(desc->name, "max-", 4) != 0)
		return value;
	if (desc->type == SHCA_OPT_INT)
		rc = parse_int(value, INT64_MIN, INT64_MAX, &v);
	else if (desc->type == SHCA_OPT_SIZE)
		rc = shca_parse_size(value, &v);
	if (rc || v <= desc->max)
		return value;
	snprintf(buf, len, "%lld", (long long)desc->max);
	return buf;
}

static int load_value(struct shca_config *config, const struct source *source, enum shca_opt opt,
		      const char *value, char *err, size_t errlen)
{
	char lowered[32];

	if (source->profile && !shca_opts[opt].adapter) {
		snprintf(err, errlen,
			 "%s: %s doesn't describe an adapter, so a profile can't set it: use --%s, "
			 "or a configuration file.",
			 source->place, shca_opts[opt].name, shca_opts[opt].name);
		return -EINVAL;
	}
	if (source->profile)
		value = lower_limit(opt, value, lowered, sizeof(lowered));
	return shca_config_set(config, opt, value, source->place, err, errlen);
}

static int load_line(struct shca_config *config, const struct source *source, char *line, char *err,
		     size_t errlen)
{
	char *name, *value;
	int o;

	cut_comment(line);
	name = trim(line);
	if (!*name)
		return 0;
	value = strchr(name, '=');
	if (!value) {
		snprintf(err, errlen, "%s: \"%s\" is not of the form \"name = value\".",
			 source->place, name);
		return -EINVAL;
	}
	*value++ = '\0';
	name = trim(name);
	o = shca_opt_find(name);
	if (o < 0) {
		snprintf(err, errlen, "%s: there is no option \"%s\": see softhca options.",
			 source->place, name);
		return -EINVAL;
	}
	return load_value(config, source, o, trim(value), err, errlen);
}

/* Reads a line. Returns its length, 0 at the end, or -EINVAL if it is no text or too long. */
static int read_line(FILE *file, char *line, int room)
{
	int n = 0, c = 0;

	while (c != '\n' && (c = getc(file)) != EOF) {
		if (!c || n == room - 1)
			return -EINVAL;
		line[n++] = (char)c;
	}
	line[n] = '\0';
	return n;
}

/* Loads the next line. Returns 1, 0 at the end, or -EINVAL with a sentence. */
static int load_next(struct shca_config *config, const struct source *source, FILE *file, char *err,
		     size_t errlen)
{
	char line[LINE_ROOM];
	int n = read_line(file, line, sizeof(line)), rc;

	if (n < 0)
		snprintf(err, errlen, "%s: not a text file.", source->place);
	if (n <= 0)
		return n;
	rc = load_line(config, source, line, err, errlen);
	return rc ? rc : 1;
}

static int load_lines(struct shca_config *config, const char *path, FILE *file, bool profile,
		      char *err, size_t errlen)
{
	struct source source = {.profile = profile};
	int rc = 1;

	for (unsigned number = 1; rc > 0; number++) {
		if (asprintf(&source.place, "%s:%u", path, number) < 0) {
			snprintf(err, errlen, "%s: out of memory.", path);
			return -EINVAL;
		}
		rc = load_next(config, &source, file, err, errlen);
		free(source.place);
	}
	return rc;
}

static int load(struct shca_config *config, const char *path, bool profile, char *err,
		size_t errlen)
{
	const char *kind = profile ? "profile" : "configuration file";
	FILE *file = fopen(path, "re");
	int rc = file ? load_lines(config, path, file, profile, err, errlen) : -EINVAL;

	if (!file || (!rc && ferror(file))) {
		snprintf(err, errlen, "The %s %s can't be read: %s.", kind, path, strerror(errno));
		rc = -EINVAL;
	}
	if (file)
		fclose(file);
	return rc;
}

int shca_config_load_file(struct shca_config *config, const char *path, char *err, size_t errlen)
{
	return load(config, path, false, err, errlen);
}

int shca_config_load_profile(struct shca_config *config, const char *path, char *err, size_t errlen)
{
	return load(config, path, true, err, errlen);
}
