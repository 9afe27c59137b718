/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: their descriptions, defaults and values, all from params.def. */
#include "base/params.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

static const struct tq_param_desc descs[] = {
#define BOOL(name, value, level, help) {#name, TQ_PARAM_BOOL, value, 0, 0, NULL, level, help},
#define INT(name, value, min, max, level, help) \
	{#name, TQ_PARAM_INT, value, min, max, NULL, level, help},
#define SIZE(name, value, min, max, level, help) \
	{#name, TQ_PARAM_SIZE, value, min, max, NULL, level, help},
#define ENUM(name, value, choices, level, help) \
	{#name, TQ_PARAM_ENUM, value, 0, 0, choices, level, help},
#define STRING(name, value, level, help) {#name, TQ_PARAM_STRING, value, 0, 0, NULL, level, help},
#include "params.def"
#undef BOOL
#undef INT
#undef SIZE
#undef ENUM
#undef STRING
};

static const size_t offsets[] = {
#define BOOL(name, value, level, help)           offsetof(struct tq_params, name),
#define INT(name, value, min, max, level, help)  offsetof(struct tq_params, name),
#define SIZE(name, value, min, max, level, help) offsetof(struct tq_params, name),
#define ENUM(name, value, choices, level, help)  offsetof(struct tq_params, name),
#define STRING(name, value, level, help)         offsetof(struct tq_params, name),
#include "params.def"
#undef BOOL
#undef INT
#undef SIZE
#undef ENUM
#undef STRING
};

const struct tq_param_desc *tq_param_desc(unsigned i)
{
	return i < ELEMENTS(descs) ? &descs[i] : NULL;
}

/* All failures to understand a value end here. */
__attribute__((format(printf, 3, 4))) static int refuse(char *why, size_t size, const char *format,
							...)
{
	va_list args;

	if (why && size) {
		va_start(args, format);
		vsnprintf(why, size, format, args);
		va_end(args);
	}
	return -EINVAL;
}

static int parse_bool(const char *value, bool *v)
{
	static const char *const yes[] = {"1", "yes", "y", "true", "t", "on", "enabled"};
	static const char *const no[] = {"0", "no", "n", "false", "f", "off", "disabled"};
	size_t i;

	for (i = 0; i < ELEMENTS(yes); i++) {
		if (!strcasecmp(value, yes[i]) || !strcasecmp(value, no[i])) {
			*v = !strcasecmp(value, yes[i]);
			return 0;
		}
	}
	return -EINVAL;
}

/* Parses a whole number, decimal or 0x...; of a size with an optional K, M or G (powers of 1024),
 * and an optional B. */
static int parse_number(const char *value, bool size, int64_t *v)
{
	static const char units[] = "KMG";
	const char *unit;
	long long n;
	char *end;

	errno = 0;
	n = strtoll(value, &end, !strncasecmp(value, "0x", 2) ? 16 : 10);
	if (end == value || errno)
		return -EINVAL;
	if (size && *end) {
		unit = *end == 'k' ? units : strchr(units, *end);
		if (unit) {
			if (__builtin_mul_overflow(n, 1LL << (10 * (unit - units + 1)), &n))
				return -EINVAL;
			end++;
		}
		if (*end == 'B')
			end++;
	}
	if (*end)
		return -EINVAL;
	*v = n;
	return 0;
}

static int parse_enum(const char *value, const char *choices, int *v)
{
	size_t len = strlen(value), n;
	int i;

	for (i = 0;; i++) {
		n = strcspn(choices, "|");
		if (n == len && !strncmp(choices, value, n)) {
			*v = i;
			return 0;
		}
		if (!choices[n])
			return -EINVAL;
		choices += n + 1;
	}
}

/* Returns why a number that is in range makes no sense; NULL: it does. */
static const char *senseless(const char *name, int64_t v)
{
	if (!strcmp(name, "pkey") && v && !(v & 0x7fff))
		return "no partition has a key whose lower 15 bits are 0";
	if (!strcmp(name, "mtu") && v && (v < 256 || (v & (v - 1))))
		return "it takes 256, 512, 1024, 2048 or 4096, or 0";
	return NULL;
}

/* Returns true if the text is a list of "NAME" or "NAME:PORT", separated by commas. */
static bool is_device_list(const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ","), name = strcspn(list, ":,");
		char *end;
		long port;

		if (!name || (list[n] && !list[n + 1]))
			return false;
		if (name < n) {
			port = strtol(list + name + 1, &end, 10);
			if (list[name + 1] < '0' || list[name + 1] > '9' || end != list + n ||
			    port < 1 || port > 255)
				return false;
		}
		list += n + (list[n] == ',');
	}
	return true;
}

static int set_number(const struct tq_param_desc *desc, int64_t *field, const char *value,
		      char *why, size_t size)
{
	bool bytes = desc->type == TQ_PARAM_SIZE;
	const char *reason;
	int64_t v;

	if (parse_number(value, bytes, &v))
		return refuse(why, size, "%s = \"%s\": it takes a whole number%s", desc->name,
			      value, bytes ? " of bytes, such as 8192, 8K or 1M" : "");
	if (v < desc->min || v > desc->max)
		return refuse(why, size, "%s = %s: it takes %lld to %lld", desc->name, value,
			      (long long)desc->min, (long long)desc->max);
	reason = senseless(desc->name, v);
	if (reason)
		return refuse(why, size, "%s = %s: %s", desc->name, value, reason);
	*field = v;
	return 0;
}

static int set(struct tq_params *params, unsigned i, const char *value, char *why, size_t size)
{
	const struct tq_param_desc *desc = &descs[i];
	void *field = (char *)params + offsets[i];

	switch (desc->type) {
	case TQ_PARAM_BOOL:
		if (parse_bool(value, field))
			return refuse(why, size, "%s = \"%s\": it takes 1 or 0", desc->name, value);
		return 0;
	case TQ_PARAM_INT:
	case TQ_PARAM_SIZE:
		return set_number(desc, field, value, why, size);
	case TQ_PARAM_ENUM:
		if (parse_enum(value, desc->choices, field))
			return refuse(why, size, "%s = \"%s\": it takes one of %s", desc->name,
				      value, desc->choices);
		return 0;
	case TQ_PARAM_STRING:
		if (strlen(value) >= sizeof(params->if_include))
			return refuse(why, size, "%s: longer than %zu characters", desc->name,
				      sizeof(params->if_include) - 1);
		if (!is_device_list(value))
			return refuse(
				why, size,
				"%s = \"%s\": it takes devices, or devices and ports, such as "
				"mlx5_0 or mlx5_0:1,mlx5_1",
				desc->name, value);
		strcpy(field, value);
		return 0;
	}
	return -EINVAL;
}

struct tq_params *tq_params_new(void)
{
	struct tq_params *params = calloc(1, sizeof(*params));
	unsigned i;

	if (!params)
		return NULL;
	for (i = 0; i < ELEMENTS(descs); i++) {
		if (set(params, i, descs[i].value, NULL, 0)) {
			/* a default of params.def that its own limits refuse: never released */
			abort();
		}
	}
	return params;
}

void tq_params_free(struct tq_params *params)
{
	free(params);
}

int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size)
{
	unsigned i;

	for (i = 0; i < ELEMENTS(descs); i++)
		if (!strcmp(descs[i].name, name))
			return set(params, i, value, why, size);
	refuse(why, size, "%s: there is no such parameter", name);
	return -ENOENT;
}
