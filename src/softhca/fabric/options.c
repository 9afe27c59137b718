/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - the table of options, and a configuration filled from it: defaults, environment,
 * single values.
 */
#define _GNU_SOURCE 1
#include "options.h"

#include "common/parse.h"
#include "layout.h"
#include "options_parse.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

/*
 * Index of the first option of each group. An enumerator per GROUP line takes the value that the
 * option after it has; the next one steps back, so that the option gets that value again.
 */
enum {
#define GROUP(title) \
	JOIN(GROUP_AT_, __LINE__), JOIN(REWIND_, __LINE__) = JOIN(GROUP_AT_, __LINE__) - 1,
#define OPT(id, name, type, def, min, max, unit, help) SAME_AS_##id,
#include "options.def"
#undef OPT
#undef GROUP
};

const struct shca_opt_desc shca_opts[SHCA_O_COUNT] = {
#define GROUP(title) [JOIN(GROUP_AT_, __LINE__)].group = title,
/* clang-format off */
#define OPT(id, name_, type_, def_, min_, max_, unit_, help_)                                      \
	[SHCA_O_##id].name = name_, [SHCA_O_##id].type = SHCA_OPT_##type_,                         \
	[SHCA_O_##id].def = def_, [SHCA_O_##id].min = min_, [SHCA_O_##id].max = max_,              \
	[SHCA_O_##id].unit = unit_, [SHCA_O_##id].help = help_,
#define ADAPTER(id, ...) OPT(id, __VA_ARGS__) [SHCA_O_##id].adapter = true,
#include "options.def"
/* clang-format on */
#undef OPT
#undef GROUP
};

int shca_opt_find(const char *name)
{
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		if (strcmp(shca_opts[o].name, name) == 0)
			return o;
	}
	return -1;
}

void shca_opt_env_name(enum shca_opt opt, char *buf, size_t len)
{
	snprintf(buf, len, "SOFTHCA_%s", shca_opts[opt].name);
	for (char *p = buf; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* Writes v with the largest unit of which it is a whole number; units go from large to small,
 * and the last one is 1. */
static void format_units(int64_t v, const int64_t *factors, const char *const *names, char *buf,
			 size_t len)
{
	while (*factors > 1 && (v == 0 || v % *factors)) {
		factors++;
		names++;
	}
	snprintf(buf, len, "%lld%s", (long long)(v / *factors), *names);
}

static void format_size(int64_t v, char *buf, size_t len)
{
	static const int64_t factors[] = {1LL << 40, 1LL << 30, 1LL << 20, 1LL << 10, 1};
	static const char *const names[] = {"T", "G", "M", "K", ""};

	if (v == INT64_MAX)
		snprintf(buf, len, "unlimited");
	else
		format_units(v, factors, names, buf, len);
}

static void format_time(int64_t v, char *buf, size_t len)
{
	static const int64_t factors[] = {1000000000, 1000000, 1000, 1};
	static const char *const names[] = {"s", "ms", "us", "ns"};

	format_units(v, factors, names, buf, len);
}

/* Writes the shortest decimal that `parse` reads back as the same number of parts, `one` of
 * which are 1. */
static void format_parts(int64_t parts, uint64_t one, int (*parse)(const char *s, int64_t *v),
			 char *buf, size_t len)
{
	uint64_t power = 1;

	for (int digits = 0; digits <= 10; digits++, power *= 10) {
		unsigned __int128 scaled = (unsigned __int128)parts * power + one / 2;
		uint64_t v = (uint64_t)(scaled / one);
		int64_t back;

		snprintf(buf, len, digits ? "%llu.%0*llu" : "%llu", (unsigned long long)(v / power),
			 digits, (unsigned long long)(v % power));
		if (parse(buf, &back) == 0 && back == parts)
			return;
	}
}

static void format_choice(const char *choices, int64_t index, char *buf, size_t len)
{
	while (index-- > 0)
		choices += strcspn(choices, "|") + 1;
	snprintf(buf, len, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void format_value(enum shca_opt opt, int64_t v, char *buf, size_t len)
{
	switch (shca_opts[opt].type) {
	case SHCA_OPT_BOOL:
		snprintf(buf, len, "%s", v ? "yes" : "no");
		break;
	case SHCA_OPT_SIZE:
		format_size(v, buf, len);
		break;
	case SHCA_OPT_TIME:
		format_time(v, buf, len);
		break;
	case SHCA_OPT_RATE:
		format_parts(v, SHCA_RATE_ONE, shca_parse_rate, buf, len);
		break;
	case SHCA_OPT_FACTOR:
		format_parts(v, SHCA_FACTOR_ONE, shca_parse_factor, buf, len);
		break;
	case SHCA_OPT_CHOICE:
		format_choice(shca_opts[opt].unit, v, buf, len);
		break;
	default:
		snprintf(buf, len, "%lld", (long long)v);
	}
}

void shca_config_format(const struct shca_config *config, enum shca_opt opt, char *buf, size_t len)
{
	if (shca_opts[opt].type == SHCA_OPT_TEXT)
		snprintf(buf, len, "%s", config->text[opt]);
	else
		format_value(opt, config->value[opt], buf, len);
}

/* Writes the values that an option accepts, for the end of "... is not a value of --x: use ". */
static void describe(enum shca_opt opt, char *buf, size_t len)
{
	const struct shca_opt_desc *desc = &shca_opts[opt];
	char min[64], max[64];

	format_value(opt, desc->min, min, sizeof(min));
	format_value(opt, desc->max, max, sizeof(max));
	switch (desc->type) {
	case SHCA_OPT_BOOL:
		snprintf(buf, len, "yes or no");
		break;
	case SHCA_OPT_INT:
		snprintf(buf, len, "a whole number from %s to %s", min, max);
		break;
	case SHCA_OPT_SIZE:
		snprintf(buf, len, "a number of bytes from %.40s to %.40s, as 4096, 64K or 1G", min,
			 max);
		break;
	case SHCA_OPT_TIME:
		snprintf(buf, len, "a time from %.40s to %.40s, as 500ns, 10us or 1.5ms", min, max);
		break;
	case SHCA_OPT_RATE:
		snprintf(buf, len, "a rate from 0 to 1, as 0.01, 1%% or 1e-3");
		break;
	case SHCA_OPT_FACTOR:
		snprintf(buf, len, "a number from %.40s to %.40s, as 1, 0.5 or 2.25", min, max);
		break;
	case SHCA_OPT_CHOICE:
		snprintf(buf, len, "one of %s", desc->unit);
		break;
	case SHCA_OPT_TEXT:
		if (opt == SHCA_O_PKEYS)
			snprintf(buf, len, "1 to %d P_Keys from 1 to 0xffff, as 0xffff,0x8001",
				 SHCA_MAX_PKEYS);
		else if (opt == SHCA_O_ENGINE_CPUS)
			snprintf(buf, len, "CPU numbers below %d, as 0,2-3", CPU_SETSIZE);
		else if (opt == SHCA_O_LINK)
			snprintf(buf, len,
				 "off, or some of latency=1.3us,bandwidth=1.5GB/s,rate=5M");
		else
			snprintf(buf, len, "one of %s", desc->unit);
		break;
	}
}

static int check_text(enum shca_opt opt, const char *s)
{
	uint16_t keys[SHCA_MAX_PKEYS];
	uint64_t mode, bytes;
	struct shca_link link;
	cpu_set_t cpus;
	uint32_t n;

	switch (opt) {
	case SHCA_O_PKEYS:
		return shca_parse_pkeys(s, keys, &n);
	case SHCA_O_MEMLOCK:
		return shca_parse_memlock(s, &mode, &bytes);
	case SHCA_O_ENGINE_CPUS:
		return shca_parse_cpus(s, &cpus);
	case SHCA_O_LINK:
		return shca_parse_link(s, &link);
	default:
		return 0;
	}
}

static int parse_value(enum shca_opt opt, const char *s, int64_t *v)
{
	const struct shca_opt_desc *desc = &shca_opts[opt];
	int rc = -EINVAL;
	bool yes;

	*v = 0;
	switch (desc->type) {
	case SHCA_OPT_BOOL:
		rc = parse_bool(s, &yes);
		*v = yes;
		return rc;
	case SHCA_OPT_RATE:
		return shca_parse_rate(s, v);
	case SHCA_OPT_CHOICE:
		*v = parse_choice(s, desc->unit);
		return *v < 0 ? -EINVAL : 0;
	case SHCA_OPT_TEXT:
		return check_text(opt, s);
	case SHCA_OPT_INT:
		return parse_int(s, desc->min, desc->max, v);
	case SHCA_OPT_SIZE:
		rc = shca_parse_size(s, v);
		break;
	case SHCA_OPT_TIME:
		rc = shca_parse_time(s, v);
		break;
	case SHCA_OPT_FACTOR:
		rc = shca_parse_factor(s, v);
		break;
	}
	return rc || *v < desc->min || *v > desc->max ? -EINVAL : 0;
}

int shca_config_set(struct shca_config *config, enum shca_opt opt, const char *value,
		    const char *source, char *err, size_t errlen)
{
	char accepted[160];
	int64_t v;

	if (strlen(value) >= SHCA_OPT_TEXT_LEN) {
		snprintf(err, errlen, "%s: the value of %s is longer than %d characters.", source,
			 shca_opts[opt].name, SHCA_OPT_TEXT_LEN - 1);
		return -EINVAL;
	}
	if (parse_value(opt, value, &v)) {
		describe(opt, accepted, sizeof(accepted));
		snprintf(err, errlen, "%s: \"%s\" is not a value of %s: use %s.", source, value,
			 shca_opts[opt].name, accepted);
		return -EINVAL;
	}
	config->value[opt] = v;
	snprintf(config->text[opt], sizeof(config->text[opt]), "%s", value);
	return 0;
}

int shca_config_defaults(struct shca_config *config)
{
	char err[256];

	memset(config, 0, sizeof(*config));
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		if (shca_config_set(config, o, shca_opts[o].def, "default", err, sizeof(err)))
			return -EINVAL;
	}
	return shca_config_finish(config, err, sizeof(err));
}

int shca_config_load_env(struct shca_config *config, char *err, size_t errlen)
{
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		char name[64], source[96];
		const char *value;
		int rc;

		shca_opt_env_name(o, name, sizeof(name));
		value = getenv(name);
		/* As everywhere, a variable that is set to nothing counts as not set. */
		if (!value || !*value)
			continue;
		snprintf(source, sizeof(source), "environment variable %s", name);
		rc = shca_config_set(config, o, value, source, err, errlen);
		if (rc)
			return rc;
	}
	return 0;
}

/* Reports a TEXT option that set() never saw, or that was changed since. */
static int bad_text(const struct shca_config *config, enum shca_opt opt, char *err, size_t errlen)
{
	char accepted[160];

	describe(opt, accepted, sizeof(accepted));
	snprintf(err, errlen, "\"%s\" is not a value of %s: use %s.", config->text[opt],
		 shca_opts[opt].name, accepted);
	return -EINVAL;
}

/* Refuses to trap an instruction that the CPU doesn't have. */
static int check_tsc(const struct shca_config *config, char *err, size_t errlen)
{
#ifndef __x86_64__
	if (config->value[SHCA_O_CLOCK_TSC] == SHCA_TSC_TRAP) {
		snprintf(err, errlen,
			 "clock-tsc is \"trap\", but only CPUs of the kind x86-64 have the "
			 "instruction rdtsc: leave out clock-tsc.");
		return -EINVAL;
	}
#else
	(void)config;
	(void)err;
	(void)errlen;
#endif
	return 0;
}

const struct shca_port_speed *shca_config_port_speed(const struct shca_config *config)
{
	static const struct shca_port_speed speeds[] = {
		{1, "10 Gb/sec (4X SDR)", 1000000000},    {2, "20 Gb/sec (4X DDR)", 2000000000},
		{4, "40 Gb/sec (4X QDR)", 4000000000},    {16, "56 Gb/sec (4X FDR)", 6820000000},
		{32, "100 Gb/sec (4X EDR)", 12500000000}, {64, "200 Gb/sec (4X HDR)", 25000000000},
		{128, "400 Gb/sec (4X NDR)", 50000000000}};
	const size_t last = sizeof(speeds) / sizeof(speeds[0]) - 1, edr = last - 2;
	size_t i = 0;

	if (!config->link_on || !config->link_bytes_per_sec)
		return &speeds[edr];
	while (i < last && speeds[i].bytes_per_sec < config->link_bytes_per_sec)
		i++;
	return &speeds[i];
}

uint64_t shca_config_busy_time(const struct shca_config *config, bool loopback, uint64_t bytes)
{
	uint64_t limit = loopback ? config->loopback_bytes_per_sec : config->link_bytes_per_sec;
	uint64_t busy = 0, least = 0;

	if (limit)
		busy = (uint64_t)((double)bytes * 1e9 / (double)limit);
	if (config->link_msgs_per_sec)
		least = 1000000000u / config->link_msgs_per_sec;
	return busy < least ? least : busy;
}

int shca_config_finish(struct shca_config *config, char *err, size_t errlen)
{
	int64_t nodes = config->value[SHCA_O_NODES], devices = config->value[SHCA_O_DEVICES];
	struct shca_link link;

	if (nodes * devices > SHCA_MAX_HCAS) {
		snprintf(err, errlen,
			 "%lld nodes with %lld devices each are more than the %d HCAs of a fabric: "
			 "lower nodes or devices.",
			 (long long)nodes, (long long)devices, SHCA_MAX_HCAS);
		return -EINVAL;
	}
	if (check_text(SHCA_O_ENGINE_CPUS, config->text[SHCA_O_ENGINE_CPUS]))
		return bad_text(config, SHCA_O_ENGINE_CPUS, err, errlen);
	if (shca_parse_pkeys(config->text[SHCA_O_PKEYS], config->pkeys, &config->npkeys))
		return bad_text(config, SHCA_O_PKEYS, err, errlen);
	if (config->value[SHCA_O_LINK_LAYER] == SHCA_LINK_ETHERNET &&
	    (config->npkeys != 1 || config->pkeys[0] != 0xffff)) {
		snprintf(err, errlen,
			 "pkeys is \"%s\", but an Ethernet port has the P_Key 0xffff alone: "
			 "leave out pkeys, or link-layer.",
			 config->text[SHCA_O_PKEYS]);
		return -EINVAL;
	}
	if (check_tsc(config, err, errlen))
		return -EINVAL;
	if (shca_parse_memlock(config->text[SHCA_O_MEMLOCK], &config->memlock_mode,
			       &config->memlock_bytes))
		return bad_text(config, SHCA_O_MEMLOCK, err, errlen);
	if (shca_parse_link(config->text[SHCA_O_LINK], &link))
		return bad_text(config, SHCA_O_LINK, err, errlen);
	config->link_on = link.on;
	config->link_latency_ns = link.latency_ns;
	config->link_bytes_per_sec = link.bytes_per_sec;
	config->link_msgs_per_sec = link.msgs_per_sec;
	config->loopback_bytes_per_sec = link.loopback_bytes_per_sec;
	return 0;
}
