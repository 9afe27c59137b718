/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_options_parse.c - each type of value, good and bad.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"
#include "common/parse.h"
#include "fabric/options_parse.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct sample {
	const char *text;
	int64_t value;
};

static void check_good(int (*parse)(const char *, int64_t *), const struct sample *sample, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v = -77;

		if (parse(sample[i].text, &v) || v != sample[i].value)
			t_fail("\"%s\" gave %lld, not %lld", sample[i].text, (long long)v,
			       (long long)sample[i].value);
	}
}

static void check_bad(int (*parse)(const char *, int64_t *), const char *const *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v;

		if (parse(s[i], &v) != -EINVAL)
			t_fail("\"%s\" was taken", s[i]);
	}
}

static void time_values(void **state)
{
	static const struct sample good[] = {
		{"0", 0},
		{"100", 100},
		{"1.3us", 1300},
		{"10ms", 10000000},
		{"2s", 2000000000},
		{"0.5s", 500000000},
		{".5us", 500},
		{"1.0", 1},
		{"1min", 60000000000},
		{"10US", 10000},
		{"9223372036854775807", INT64_MAX},
	};
	static const char *const bad[] = {
		"",
		"us",
		"1.5",
		"-1us",
		"+1us",
		" 1us",
		"1us ",
		"1 us",
		"1h",
		"1uss",
		"1.2.3us",
		"1e3",
		"9223372036854775808",
		"9223372037s",
		"99999999999999999999",
		"0x10",
		"nan",
		"inf",
		".",
		"unlimited",
	};

	(void)state;
	check_good(shca_parse_time, good, COUNT(good));
	check_bad(shca_parse_time, bad, COUNT(bad));
}

static void size_values(void **state)
{
	static const struct sample good[] = {
		{"0", 0},
		{"4096", 4096},
		{"4K", 4096},
		{"4k", 4096},
		{"4KB", 4096},
		{"4KiB", 4096},
		{"1.5K", 1536},
		{"1M", 1 << 20},
		{"1G", 1 << 30},
		{"2T", 2LL << 40},
		{"unlimited", INT64_MAX},
		{"7B", 7},
	};
	static const char *const bad[] = {
		"",           "K",        "-1",
		"1.5",        "1KK",      "1P",
		"4 K",        "8388608T", "9223372036854775808",
		"Unlimited!", "1e6",      "4K,",
		"0x1000",
	};

	(void)state;
	check_good(shca_parse_size, good, COUNT(good));
	check_bad(shca_parse_size, bad, COUNT(bad));
}

static void rate_values(void **state)
{
	static const struct sample good[] = {
		{"0", 0},
		{"1", 4294967296},
		{"100%", 4294967296},
		{"0.5", 2147483648},
		{"1%", 42949673},
		{"0.01", 42949673},
		{"1e-2", 42949673},
		{"1E-3", 4294967},
		{"10e-1", 4294967296},
		{"0.1e1", 4294967296},
		{"50%", 2147483648},
		{"1e-18", 0},
		{"0.000000000000000001e-18", 0},
	};
	static const char *const bad[] = {
		"",  "1.1",  "101%",  "-0.1", "1e1", "1e-", "1e-19", "1e99999999999",
		"%", "0.5x", "0.5%%", "2",    "e-3", "0,5",
	};

	(void)state;
	check_good(shca_parse_rate, good, COUNT(good));
	check_bad(shca_parse_rate, bad, COUNT(bad));
}

static int any_int(const char *text, int64_t *value)
{
	return parse_int(text, INT64_MIN, INT64_MAX, value);
}

static int yes_or_no(const char *text, int64_t *value)
{
	bool yes;
	int rc = parse_bool(text, &yes);

	*value = rc ? *value : yes;
	return rc;
}

static void int_and_bool_values(void **state)
{
	static const struct sample ints[] = {
		{"0", 0},
		{"42", 42},
		{"-1", -1},
		{"0x2a", 42},
		{"010", 10},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
	};
	static const char *const bad_ints[] = {
		"",
		"x",
		"1x",
		" 1",
		"1 ",
		"+1",
		"--1",
		"- 1",
		"0x",
		"-0x1",
		"1.0",
		"1e3",
		"9223372036854775808",
		"0xffffffffffffffff",
	};
	static const struct sample bools[] = {
		{"yes", 1}, {"on", 1},    {"t", 1},  {"Enabled", 1}, {"true", 1},
		{"1", 1},   {"YES", 1},   {"no", 0}, {"n", 0},       {"disabled", 0},
		{"off", 0}, {"false", 0}, {"0", 0},  {"Off", 0},
	};
	static const char *const bad_bools[] = {"", "2", "yess", "no ", "able"};

	(void)state;
	check_good(any_int, ints, COUNT(ints));
	check_bad(any_int, bad_ints, COUNT(bad_ints));
	check_good(yes_or_no, bools, COUNT(bools));
	check_bad(yes_or_no, bad_bools, COUNT(bad_bools));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_values),
		cmocka_unit_test(size_values),
		cmocka_unit_test(rate_values),
		cmocka_unit_test(int_and_bool_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
