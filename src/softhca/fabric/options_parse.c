/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options_parse.c - from text to value. Numbers are kept as integers and powers of ten throughout,
 * so that a value written with a fraction is exact and no locale's decimal comma matters.
 */
#define _GNU_SOURCE 1
#include "options_parse.h"

#include "common/parse.h"

#define MAX_DIGITS 18 /* of a fraction, and the largest exponent: 10^18 fits in 64 bits */

/* digits x 10^-frac */
struct decimal {
	uint64_t digits;
	int frac;
};

struct unit {
	const char *name;
	uint64_t factor;
};

static int scan_exponent(const char **s, struct decimal *decimal)
{
	const char *p = *s + 1;
	bool negative = *p == '-';
	int e = 0;

	if (*p == '-' || *p == '+')
		p++;
	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		e = e * 10 + (*p - '0');
		if (e > MAX_DIGITS)
			return -EINVAL;
	}
	decimal->frac += negative ? e : -e;
	*s = p;
	return 0;
}

/* Reads "12", "1.5" or ".5" and moves *s behind it. */
static int scan_decimal(const char **s, struct decimal *decimal)
{
	const char *p = *s;
	int seen = 0, significant = 0;
	bool point = false;

	*decimal = (struct decimal){0};
	for (; isdigit((unsigned char)*p) || (*p == '.' && !point); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		seen++;
		if (significant || *p != '0')
			significant++;
		if (significant > MAX_DIGITS + 1 || decimal->frac == MAX_DIGITS)
			return -EINVAL;
		if (__builtin_mul_overflow(decimal->digits, 10, &decimal->digits) ||
		    __builtin_add_overflow(decimal->digits, *p - '0', &decimal->digits))
			return -EINVAL;
		decimal->frac += point;
	}
	if (!seen)
		return -EINVAL;
	*s = p;
	return 0;
}

static unsigned __int128 power10(int n)
{
	unsigned __int128 p = 1;

	while (n-- > 0)
		p *= 10;
	return p;
}

/* Computes *decimal x factor, rounded to the nearest. A fraction of an indivisible unit is refused.
 */
static int scale(const struct decimal *decimal, uint64_t factor, int64_t *out)
{
	unsigned __int128 v = (unsigned __int128)decimal->digits * factor;

	if (factor == 1 && decimal->frac > 0 && decimal->digits % (uint64_t)power10(decimal->frac))
		return -EINVAL;
	if (decimal->frac > 0) {
		/* Two powers of MAX_DIGITS, one for a fraction and one for a negative exponent, and
		 * 10^2 for a percent sign: 10^38 fits in 128 bits. */
		unsigned __int128 div = power10(decimal->frac);

		v = (v + div / 2) / div;
	} else if (decimal->frac < 0) {
		unsigned __int128 mul = power10(-decimal->frac);

		if (v > INT64_MAX / mul)
			return -EINVAL;
		v *= mul;
	}
	if (v > INT64_MAX)
		return -EINVAL;
	*out = (int64_t)v;
	return 0;
}

static int parse_units(const char *s, const struct unit *units, int64_t *out)
{
	struct decimal decimal;
	int rc = scan_decimal(&s, &decimal);

	if (rc)
		return rc;
	for (; units->name; units++) {
		if (strcasecmp(s, units->name) == 0)
			return scale(&decimal, units->factor, out);
	}
	return -EINVAL;
}

int shca_parse_time(const char *s, int64_t *ns)
{
	static const struct unit units[] = {
		{"", 1},         {"ns", 1},         {"us", 1000},
		{"ms", 1000000}, {"s", 1000000000}, {"min", 60000000000},
		{NULL, 0},
	};

	return parse_units(s, units, ns);
}

int shca_parse_size(const char *s, int64_t *bytes)
{
	static const struct unit units[] = {
		{"", 1},
		{"b", 1},
		{"k", 1ULL << 10},
		{"kb", 1ULL << 10},
		{"kib", 1ULL << 10},
		{"m", 1ULL << 20},
		{"mb", 1ULL << 20},
		{"mib", 1ULL << 20},
		{"g", 1ULL << 30},
		{"gb", 1ULL << 30},
		{"gib", 1ULL << 30},
		{"t", 1ULL << 40},
		{"tb", 1ULL << 40},
		{"tib", 1ULL << 40},
		{NULL, 0},
	};

	if (strcmp(s, "unlimited") == 0) {
		*bytes = INT64_MAX;
		return 0;
	}
	return parse_units(s, units, bytes);
}

int shca_parse_rate(const char *s, int64_t *parts)
{
	struct decimal decimal;
	int64_t v;

	if (scan_decimal(&s, &decimal))
		return -EINVAL;
	if ((*s == 'e' || *s == 'E') && scan_exponent(&s, &decimal))
		return -EINVAL;
	if (*s == '%') {
		decimal.frac += 2;
		s++;
	}
	if (*s || scale(&decimal, SHCA_RATE_ONE, &v) || v > SHCA_RATE_ONE)
		return -EINVAL;
	*parts = v;
	return 0;
}

int shca_parse_factor(const char *s, int64_t *parts)
{
	struct decimal decimal;

	if (scan_decimal(&s, &decimal) || *s)
		return -EINVAL;
	return scale(&decimal, SHCA_FACTOR_ONE, parts);
}

/* Copies the next item of a comma-separated list into buf, without the blanks around it, and
 * moves *s behind its comma, or sets it to NULL. */
static int next_item(const char **s, char *buf, size_t len)
{
	size_t n = strcspn(*s, ",");
	const char *p = *s;

	*s = p[n] ? p + n + 1 : NULL;
	while (n && isspace((unsigned char)*p)) {
		p++;
		n--;
	}
	while (n && isspace((unsigned char)p[n - 1]))
		n--;
	if (n == 0 || n >= len)
		return -EINVAL;
	memcpy(buf, p, n);
	buf[n] = '\0';
	return 0;
}

int shca_parse_pkeys(const char *s, uint16_t *keys, uint32_t *n)
{
	char item[SHCA_OPT_TEXT_LEN];
	uint32_t count = 0;
	int64_t v;

	while (s) {
		if (count == sizeof(((struct shca_config *)0)->pkeys) / sizeof(uint16_t) ||
		    next_item(&s, item, sizeof(item)) || parse_int(item, 0, 0xffff, &v))
			return -EINVAL;
		/* IBA 10.9.1.1: a P_Key whose low 15 bits are zero is invalid. */
		if (!(v & 0x7fff))
			return -EINVAL;
		keys[count++] = (uint16_t)v;
	}
	*n = count;
	return 0;
}

int shca_parse_cpus(const char *s, cpu_set_t *set)
{
	char item[SHCA_OPT_TEXT_LEN];

	CPU_ZERO(set);
	if (!*s)
		return 0;
	while (s) {
		int64_t first, last;
		char *dash;

		if (next_item(&s, item, sizeof(item)))
			return -EINVAL;
		dash = strchr(item, '-');
		if (dash)
			*dash = '\0';
		if (parse_int(item, 0, CPU_SETSIZE - 1, &first) ||
		    parse_int(dash ? dash + 1 : item, first, CPU_SETSIZE - 1, &last))
			return -EINVAL;
		for (int64_t cpu = first; cpu <= last; cpu++)
			CPU_SET((size_t)cpu, set);
	}
	return 0;
}

int shca_parse_memlock(const char *s, uint64_t *mode, uint64_t *bytes)
{
	int64_t v = 0;

	if (strcmp(s, "limit") == 0)
		*mode = SHCA_MEMLOCK_KERNEL;
	else if (strcmp(s, "unlimited") == 0)
		*mode = SHCA_MEMLOCK_UNLIMITED;
	else if (shca_parse_size(s, &v) == 0)
		*mode = SHCA_MEMLOCK_BYTES;
	else
		return -EINVAL;
	*bytes = (uint64_t)v;
	return 0;
}

/* Returns the factor of k, M, G or T in a link's unit, or of its binary form (Ki ...); 1 if
 * there is none. */
static uint64_t scan_prefix(const char **s)
{
	static const char letters[] = "kMGT";
	const char *at = **s ? strchr(letters, **s == 'K' ? 'k' : **s) : NULL;
	uint64_t decimal = 1, binary = 1;

	if (!at)
		return 1;
	(*s)++;
	for (const char *p = letters; p <= at; p++) {
		decimal *= 1000;
		binary *= 1024;
	}
	if (**s != 'i')
		return decimal;
	(*s)++;
	return binary;
}

static int parse_bandwidth(const char *s, int64_t *bytes)
{
	struct decimal decimal;
	uint64_t factor;
	int64_t v;
	bool bits = false;

	if (scan_decimal(&s, &decimal))
		return -EINVAL;
	factor = scan_prefix(&s);
	if (strncmp(s, "bit", 3) == 0) {
		bits = true;
		s += 3;
	} else if (*s == 'B') {
		s++;
	}
	if (strcmp(s, "") != 0 && strcmp(s, "/s") != 0)
		return -EINVAL;
	if (scale(&decimal, factor, &v))
		return -EINVAL;
	*bytes = bits ? v / 8 : v;
	return 0;
}

static int parse_msg_rate(const char *s, int64_t *msgs)
{
	struct decimal decimal;
	uint64_t factor;

	if (scan_decimal(&s, &decimal))
		return -EINVAL;
	factor = scan_prefix(&s);
	if (strcmp(s, "") != 0 && strcmp(s, "/s") != 0)
		return -EINVAL;
	return scale(&decimal, factor, msgs);
}

int shca_parse_link(const char *s, struct shca_link *link)
{
	/* With a latency beyond 1000 s the sums that pace deliveries would be meaningless. */
	static const struct {
		const char *name;
		int (*parse)(const char *s, int64_t *out);
		int64_t min, max;
	} fields[] = {
		{"latency", shca_parse_time, 0, 1000000000000},
		{"bandwidth", parse_bandwidth, 1, INT64_MAX},
		{"rate", parse_msg_rate, 1, 1000000000},
		{"loopback", parse_bandwidth, 1, INT64_MAX},
	};
	enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
	char item[SHCA_OPT_TEXT_LEN];
	int64_t got[FIELDS] = {-1, -1, -1, -1};

	*link = (struct shca_link){0};
	if (strcmp(s, "off") == 0)
		return 0;
	while (s) {
		char *value;
		size_t i = 0;

		if (next_item(&s, item, sizeof(item)))
			return -EINVAL;
		value = strchr(item, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		while (i < FIELDS && strcmp(item, fields[i].name) != 0)
			i++;
		if (i == FIELDS || got[i] >= 0 || fields[i].parse(value, &got[i]))
			return -EINVAL;
		if (got[i] < fields[i].min || got[i] > fields[i].max)
			return -EINVAL;
	}
	link->on = 1;
	link->latency_ns = got[0] > 0 ? (uint64_t)got[0] : 0;
	link->bytes_per_sec = got[1] > 0 ? (uint64_t)got[1] : 0;
	link->msgs_per_sec = got[2] > 0 ? (uint64_t)got[2] : 0;
	link->loopback_bytes_per_sec = got[3] > 0 ? (uint64_t)got[3] : link->bytes_per_sec;
	return 0;
}
