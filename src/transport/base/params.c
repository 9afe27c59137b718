/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: their descriptions, defaults and values, all from params.def. */
#include "base/params.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* Checks of numbers: each returns why a value in range makes no sense, as the end of a sentence, or
 * NULL. */
static const char *check_pkey(int64_t pkey)
{
	if (pkey && !(pkey & 0x7fff))
		return "no partition has a key whose lower 15 bits are 0.";
	return NULL;
}

static const char *check_mtu(int64_t mtu)
{
	if (mtu && (mtu < 256 || (mtu & (mtu - 1))))
		return "it takes 256, 512, 1024, 2048 or 4096, or 0.";
	return NULL;
}

/* Returns true if the `len` characters at `item` are "NAME" or "NAME:PORT". */
static bool is_device(const char *item, size_t len)
{
	size_t name = strcspn(item, ":,");
	const char *port = item + name + 1;
	char *end;
	long number;

	if (name >= len)
		return len > 0;
	if (!name || *port < '0' || *port > '9')
		return false;
	number = strtol(port, &end, 10);
	return end == item + len && number >= 1 && number <= 255;
}

#define DEVICE_LIST "devices, or devices and ports, such as mlx5_0 or mlx5_0:1,mlx5_1"

static bool are_devices(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		if (!is_device(list, len) || (list[len] && !list[len + 1]))
			return false;
		list += len + (list[len] == ',');
	}
	return true;
}

static const struct param {
	struct tq_param_desc desc;
	size_t offset; /* of the value in struct tq_params */
	const char *(*check_number)(int64_t value);
	bool (*check_text)(const char *value);
} table[] = {
#define PARAM(name, type, value, min, max, choices, level, help, ...) \
	{{#name, type, value, min, max, choices, level, help},        \
	 offsetof(struct tq_params, name),                            \
	 __VA_ARGS__},
#define BOOL(name, value, level, help) \
	PARAM(name, TQ_PARAM_BOOL, value, 0, 0, NULL, level, help, NULL, NULL)
#define INT(name, value, min, max, level, help) \
	PARAM(name, TQ_PARAM_INT, value, min, max, NULL, level, help, NULL, NULL)
#define INT_CHECKED(name, value, min, max, check, level, help) \
	PARAM(name, TQ_PARAM_INT, value, min, max, NULL, level, help, check, NULL)
#define SIZE(name, value, min, max, level, help) \
	PARAM(name, TQ_PARAM_SIZE, value, min, max, NULL, level, help, NULL, NULL)
#define ENUM(name, value, choices, level, help) \
	PARAM(name, TQ_PARAM_ENUM, value, 0, 0, choices, level, help, NULL, NULL)
#define STRING(name, value, form, check, level, help) \
	PARAM(name, TQ_PARAM_STRING, value, 0, 0, form, level, help, NULL, check)
#include "params.def"
#undef BOOL
#undef INT
#undef INT_CHECKED
#undef SIZE
#undef ENUM
#undef STRING
#undef PARAM
};

const struct tq_param_desc *tq_param_desc(unsigned i)
{
	return i < ELEMENTS(table) ? &table[i].desc : NULL;
}

/* Writes to `why`, unless that is NULL, why a value is refused. Returns -EINVAL. */
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

/* Parses a number of bytes, with an optional K, M or G (powers of 1024), and an optional B. */
static int parse_size(const char *text, int64_t *bytes)
{
	static const char units[] = "KMG";
	const char *end = parse_number_at(text, bytes), *unit;

	if (!end)
		return -EINVAL;
	unit = *end == 'k' ? units : strchr(units, *end);
	if (*end && unit) {
		if (__builtin_mul_overflow(*bytes, 1LL << (10 * (unit - units + 1)), bytes))
			return -EINVAL;
		end++;
	}
	return *end && strcmp(end, "B") != 0 ? -EINVAL : 0;
}

static int set_number(const struct param *param, int64_t *field, const char *value, char *why,
		      size_t size)
{
	const struct tq_param_desc *desc = &param->desc;
	bool bytes = desc->type == TQ_PARAM_SIZE;
	const char *reason;
	int64_t v;

	if (bytes ? parse_size(value, &v) : parse_int(value, INT64_MIN, INT64_MAX, &v))
		return refuse(why, size, "%s = \"%s\": it takes a whole number%s.", desc->name,
			      value, bytes ? " of bytes, such as 8192, 8K or 1M" : "");
	if (v < desc->min || v > desc->max)
		return refuse(why, size, "%s = %s: it takes %lld to %lld.", desc->name, value,
			      (long long)desc->min, (long long)desc->max);
	reason = param->check_number ? param->check_number(v) : NULL;
	if (reason)
		return refuse(why, size, "%s = %s: %s", desc->name, value, reason);
	*field = v;
	return 0;
}

static int set_text(const struct param *param, char *field, const char *value, char *why,
		    size_t size)
{
	const struct tq_param_desc *desc = &param->desc;

	if (strlen(value) >= TQ_PARAM_TEXT_SIZE)
		return refuse(why, size, "%s: longer than %d characters.", desc->name,
			      TQ_PARAM_TEXT_SIZE - 1);
	if (!param->check_text(value))
		return refuse(why, size, "%s = \"%s\": it takes %s.", desc->name, value,
			      desc->choices);
	strcpy(field, value);
	return 0;
}

static int set(struct tq_params *params, const struct param *param, const char *value, char *why,
	       size_t size)
{
	const struct tq_param_desc *desc = &param->desc;
	void *field = (char *)params + param->offset;
	int choice;

	switch (desc->type) {
	case TQ_PARAM_BOOL:
		if (parse_bool(value, field))
			return refuse(why, size, "%s = \"%s\": it takes 1 or 0.", desc->name,
				      value);
		return 0;
	case TQ_PARAM_INT:
	case TQ_PARAM_SIZE:
		return set_number(param, field, value, why, size);
	case TQ_PARAM_ENUM:
		choice = parse_choice(value, desc->choices);
		if (choice < 0)
			return refuse(why, size, "%s = \"%s\": it takes one of %s.", desc->name,
				      value, desc->choices);
		*(int *)field = choice;
		return 0;
	case TQ_PARAM_STRING:
		return set_text(param, field, value, why, size);
	}
	return -EINVAL;
}

struct tq_params *tq_params_new(void)
{
	struct tq_params *params = calloc(1, sizeof(*params));
	unsigned i;

	if (!params)
		return NULL;
	for (i = 0; i < ELEMENTS(table); i++) {
		if (set(params, &table[i], table[i].desc.value, NULL, 0)) {
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

	for (i = 0; i < ELEMENTS(table); i++)
		if (!strcmp(table[i].desc.name, name))
			return set(params, &table[i], value, why, size);
	refuse(why, size, "%s: there is no such parameter.", name);
	return -ENOENT;
}
