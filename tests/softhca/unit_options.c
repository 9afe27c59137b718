/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_options.c - the options: their ranges and choices; the sources and their order; checks
 * across options.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "common/parse.h"

#include "fabric/layout.h"
#include "fabric/options.h"
#include "fabric/options_parse.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct shca_config config;
static char err[512];

static int fresh(void **state)
{
	(void)state;
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		char name[64];

		shca_opt_env_name(o, name, sizeof(name));
		unsetenv(name);
	}
	memset(err, 0, sizeof(err));
	return shca_config_defaults(&config);
}

static int set(enum shca_opt o, const char *value)
{
	return shca_config_set(&config, o, value, "test", err, sizeof(err));
}

static void choices(void **state)
{
	static const char *const bad[] = {"",         "impl",         "implicitly",
					  "Implicit", "off|explicit", "|"};

	(void)state;
	t_eq(parse_choice("off", "off|explicit|implicit"), SHCA_ODP_OFF);
	t_eq(parse_choice("explicit", "off|explicit|implicit"), SHCA_ODP_EXPLICIT);
	t_eq(parse_choice("implicit", "off|explicit|implicit"), SHCA_ODP_IMPLICIT);
	for (size_t i = 0; i < COUNT(bad); i++)
		t_eq(parse_choice(bad[i], "off|explicit|implicit"), -EINVAL);
	/* The options that the code names by number have their place in the table. */
	t_eq(set(SHCA_O_CQ_ARM, "new"), 0);
	t_eq(config.value[SHCA_O_CQ_ARM], SHCA_CQ_ARM_NEW);
	t_eq(set(SHCA_O_TGT_LIFETIME, "open"), 0);
	t_eq(config.value[SHCA_O_TGT_LIFETIME], SHCA_TGT_OPEN);
	t_eq(set(SHCA_O_COPY, "double"), 0);
	t_eq(config.value[SHCA_O_COPY], SHCA_COPY_DOUBLE);
}

static void ranges(void **state)
{
	(void)state;
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		const struct shca_opt_desc *desc = &shca_opts[o];
		char text[32];

		if (desc->type != SHCA_OPT_INT && desc->type != SHCA_OPT_SIZE &&
		    desc->type != SHCA_OPT_TIME)
			continue;
		snprintf(text, sizeof(text), "%lld", (long long)desc->min);
		t_eq(set(o, text), 0);
		t_eq(config.value[o], desc->min);
		snprintf(text, sizeof(text), "%lld", (long long)desc->max);
		t_eq(set(o, text), 0);
		t_eq(config.value[o], desc->max);
		snprintf(text, sizeof(text), "%lld", (long long)desc->min - 1);
		t_eq(set(o, text), -EINVAL);
		if (desc->max < INT64_MAX) {
			snprintf(text, sizeof(text), "%lld", (long long)desc->max + 1);
			t_eq(set(o, text), -EINVAL);
		}
		/* The refused value changed nothing. */
		t_eq(config.value[o], desc->max);
	}
}

static void pkeys(void **state)
{
	static const char *const bad[] = {"",      ",",       "0xffff,", "0",        "0x8000",
					  "65536", "0x1ffff", "-1",      "0xffff;1", "ffff"};
	char many[1024] = "1";
	uint16_t keys[SHCA_MAX_PKEYS];
	uint32_t n;

	(void)state;
	t_eq(config.npkeys, 1);
	t_eq(config.pkeys[0], 0xffff);
	t_eq(set(SHCA_O_PKEYS, "0xffff, 0x8001,2"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
	t_eq(config.npkeys, 3);
	t_eq(config.pkeys[1], 0x8001);
	t_eq(config.pkeys[2], 2);
	for (size_t i = 0; i < COUNT(bad); i++)
		t_eq(set(SHCA_O_PKEYS, bad[i]), -EINVAL);
	for (int i = 1; i < SHCA_MAX_PKEYS; i++)
		strcat(many, ",1");
	t_eq(shca_parse_pkeys(many, keys, &n), 0);
	t_eq(n, SHCA_MAX_PKEYS);
	strcat(many, ",1");
	t_eq(shca_parse_pkeys(many, keys, &n), -EINVAL);
}

static void cpus(void **state)
{
	static const char *const bad[] = {",", "0,",    "1-",   "-1", "3-2",
					  "a", "0-1-2", "1024", "0 1"};
	cpu_set_t got;

	(void)state;
	t_eq(shca_parse_cpus("", &got), 0);
	t_eq(CPU_COUNT(&got), 0);
	t_eq(shca_parse_cpus("0,2-3", &got), 0);
	t_eq(CPU_COUNT(&got), 3);
	t_holds(CPU_ISSET(0, &got) && CPU_ISSET(2, &got) && CPU_ISSET(3, &got));
	for (size_t i = 0; i < COUNT(bad); i++)
		t_eq(set(SHCA_O_ENGINE_CPUS, bad[i]), -EINVAL);
}

static void memlock(void **state)
{
	static const struct {
		const char *text;
		uint64_t mode, bytes;
	} good[] = {{"limit", 0, 0}, {"unlimited", 1, 0}, {"64K", 2, 65536}, {"0", 2, 0}};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		t_eq(set(SHCA_O_MEMLOCK, good[i].text), 0);
		t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
		t_eq(config.memlock_mode, good[i].mode);
		t_eq(config.memlock_bytes, good[i].bytes);
	}
	t_eq(set(SHCA_O_MEMLOCK, ""), -EINVAL);
	t_eq(set(SHCA_O_MEMLOCK, "none"), -EINVAL);
}

static void link_model(void **state)
{
	static const struct {
		const char *text;
		uint64_t on, latency, bandwidth, rate, loopback;
	} good[] = {
		{"off", 0, 0, 0, 0, 0},
		{"latency=1.3us", 1, 1300, 0, 0, 0},
		{"latency=1.3us,bandwidth=1.5GB/s", 1, 1300, 1500000000, 0, 1500000000},
		{"rate=5M,bandwidth=1GiB/s", 1, 0, 1073741824, 5000000, 1073741824},
		{"bandwidth=100Gbit/s", 1, 0, 12500000000, 0, 12500000000},
		{"bandwidth=1000", 1, 0, 1000, 0, 1000},
		{"bandwidth=2MB, rate=10k/s", 1, 0, 2000000, 10000, 2000000},
		{"loopback=1MB/s,bandwidth=2MB/s", 1, 0, 2000000, 0, 1000000},
		{"loopback=1MB/s", 1, 0, 0, 0, 1000000},
	};
	static const char *const bad[] = {
		"",
		"on",
		"latency",
		"latency=",
		"latency=1us,",
		"latency=1us,latency=2us",
		"speed=1GB/s",
		"bandwidth=0",
		"bandwidth=1XB/s",
		"bandwidth=1GB/h",
		"rate=0",
		"rate=1.5",
		"latency=-1us",
		"off,latency=1us",
		"bandwidth=1GB/s/s",
		"latency=2000s",
		"bandwidth=9999999999TB/s",
		"loopback=0",
		"loopback=1GB/s,loopback=1GB/s",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		t_eq(set(SHCA_O_LINK, good[i].text), 0);
		t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
		t_eq(config.link_on, good[i].on);
		t_eq(config.link_latency_ns, good[i].latency);
		t_eq(config.link_bytes_per_sec, good[i].bandwidth);
		t_eq(config.link_msgs_per_sec, good[i].rate);
		t_eq(config.loopback_bytes_per_sec, good[i].loopback);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (set(SHCA_O_LINK, bad[i]) != -EINVAL)
			t_fail("\"%s\" was taken", bad[i]);
	}
}

static void names(void **state)
{
	char name[64];

	(void)state;
	t_eq(shca_opt_find("cq-arm"), SHCA_O_CQ_ARM);
	t_eq(shca_opt_find("cq-ar"), -1);
	t_eq(shca_opt_find(""), -1);
	shca_opt_env_name(SHCA_O_CQ_ARM, name, sizeof(name));
	t_str_eq(name, "SOFTHCA_CQ_ARM");
	t_str_eq(shca_opts[SHCA_O_NODES].group, "Fabric");
	t_holds(shca_opts[SHCA_O_DEVICES].group == NULL);
	t_holds(shca_opts[SHCA_O_FAULT_SEED].group != NULL);
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		t_holds(shca_opts[o].help != NULL);
		t_eq(shca_opt_find(shca_opts[o].name), o);
	}
}

/* Checks that a value is read back as it was written. */
static void round_trip(enum shca_opt o)
{
	struct shca_config before = config;
	char text[SHCA_OPT_TEXT_LEN];

	shca_config_format(&config, o, text, sizeof(text));
	if (set(o, text))
		t_fail("%s can't read its own \"%s\": %s", shca_opts[o].name, text, err);
	t_eq(config.value[o], before.value[o]);
	if (shca_opts[o].type == SHCA_OPT_TEXT)
		t_str_eq(config.text[o], before.text[o]);
}

static void formats(void **state)
{
	static const int64_t rates[] = {1,          2,          42949673,  4294967,
					2147483648, 4294967295, 4294967296};
	char text[SHCA_OPT_TEXT_LEN];

	(void)state;
	for (int o = 0; o < SHCA_O_COUNT; o++) {
		shca_config_format(&config, o, text, sizeof(text));
		/* The table has every default in the form in which the program would write it. */
		t_str_eq(text, shca_opts[o].def);
		round_trip(o);
		if (shca_opts[o].type == SHCA_OPT_TEXT || shca_opts[o].type == SHCA_OPT_RATE ||
		    shca_opts[o].type == SHCA_OPT_CHOICE)
			continue;
		config.value[o] = shca_opts[o].min;
		round_trip(o);
		config.value[o] = shca_opts[o].max;
		round_trip(o);
	}
	for (size_t i = 0; i < COUNT(rates); i++) {
		config.value[SHCA_O_FAULT_DROP] = rates[i];
		round_trip(SHCA_O_FAULT_DROP);
	}
	t_eq(set(SHCA_O_FAULT_DROP, "1%"), 0);
	shca_config_format(&config, SHCA_O_FAULT_DROP, text, sizeof(text));
	t_str_eq(text, "0.01");
	t_eq(set(SHCA_O_ENGINE_SPIN, "1.5ms"), 0);
	shca_config_format(&config, SHCA_O_ENGINE_SPIN, text, sizeof(text));
	t_str_eq(text, "1500us");
}

static void messages(void **state)
{
	char long_text[SHCA_OPT_TEXT_LEN + 1], small[8];

	(void)state;
	t_eq(shca_config_set(&config, SHCA_O_NODES, "65", "--nodes", err, sizeof(err)), -EINVAL);
	t_str_eq(err, "--nodes: \"65\" is not a value of nodes: use a whole number from 1 to 64.");
	t_eq(set(SHCA_O_MTU, "1500"), -EINVAL);
	t_holds(strstr(err, "256|512|1024|2048|4096") != NULL);
	memset(long_text, '1', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	t_eq(set(SHCA_O_PKEYS, long_text), -EINVAL);
	t_holds(strstr(err, "longer than") != NULL);
	t_eq(shca_config_set(&config, SHCA_O_MTU, "x", "t", small, sizeof(small)), -EINVAL);
	t_eq(strlen(small), sizeof(small) - 1);
}

static int load_text(const char *text, size_t len)
{
	char path[] = "/tmp/unit_options.XXXXXX";
	int fd = mkstemp(path), rc;

	t_holds(fd >= 0);
	t_eq(write(fd, text, len), len);
	close(fd);
	rc = shca_config_load_file(&config, path, err, sizeof(err));
	unlink(path);
	return rc;
}

static void files(void **state)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{"nodes = 2\n\nbogus = 1\n", ":3: there is no option \"bogus\""},
		{"nodes\n", ":1: \"nodes\" is not of the form"},
		{"# x\nnodes = 0\n", ":2: \"0\" is not a value of nodes"},
		{"= 3\n", ":1: there is no option \"\""},
		{"nodes =\n", ":1: \"\" is not a value of nodes"},
		{"[section]\n", ":1: "},
	};
	static const char good[] =
		"# a comment\n\n  nodes = 4 # four\ncq-arm=new\r\n\tengine-cpus =\n"
		"nodes = 5\nlink = latency=1us,bandwidth=1GB/s";

	char gone[] = "/tmp/unit_options.XXXXXX";
	int fd = mkstemp(gone);

	(void)state;
	t_holds(fd >= 0);
	close(fd);
	unlink(gone);
	t_eq(load_text(good, strlen(good)), 0);
	t_eq(config.value[SHCA_O_NODES], 5);
	t_eq(config.value[SHCA_O_CQ_ARM], SHCA_CQ_ARM_NEW);
	t_str_eq(config.text[SHCA_O_LINK], "latency=1us,bandwidth=1GB/s");
	t_eq(load_text("", 0), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		t_eq(load_text(bad[i].text, strlen(bad[i].text)), -EINVAL);
		if (!strstr(err, bad[i].error))
			t_fail("\"%s\" lacks \"%s\"", err, bad[i].error);
	}
	t_eq(load_text("nodes = 2\0\n", 11), -EINVAL);
	t_holds(strstr(err, "not a text file") != NULL);
	t_eq(shca_config_load_file(&config, gone, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, gone) != NULL);
	t_eq(shca_config_load_file(&config, "/", err, sizeof(err)), -EINVAL);
}

static void environment(void **state)
{
	(void)state;
	setenv("SOFTHCA_NODES", "3", 1);
	setenv("SOFTHCA_CQ_ARM", "new", 1);
	setenv("SOFTHCA_MTU", "", 1);
	t_eq(shca_config_load_env(&config, err, sizeof(err)), 0);
	t_eq(config.value[SHCA_O_NODES], 3);
	t_eq(config.value[SHCA_O_CQ_ARM], SHCA_CQ_ARM_NEW);
	t_eq(config.value[SHCA_O_MTU], 4);
	setenv("SOFTHCA_FAULT_DROP", "2", 1);
	t_eq(shca_config_load_env(&config, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, "environment variable SOFTHCA_FAULT_DROP") != NULL);
}

/* Checks that, of sources loaded in the order of their rank, a later one wins, and only for the
 * options that it names. */
static void precedence(void **state)
{
	static const char file[] = "nodes = 2\ndevices = 2\nxrc = no\n";

	(void)state;
	setenv("SOFTHCA_NODES", "3", 1);
	setenv("SOFTHCA_DEVICES", "3", 1);
	t_eq(load_text(file, strlen(file)), 0);
	t_eq(shca_config_load_env(&config, err, sizeof(err)), 0);
	t_eq(set(SHCA_O_NODES, "4"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
	t_eq(config.value[SHCA_O_NODES], 4);
	t_eq(config.value[SHCA_O_DEVICES], 3);
	t_eq(config.value[SHCA_O_XRC], 0);
	t_eq(config.value[SHCA_O_ATOMICS], 1);
}

static void finish_checks(void **state)
{
	(void)state;
	t_eq(set(SHCA_O_NODES, "32"), 0);
	t_eq(set(SHCA_O_DEVICES, "2"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
	t_eq(set(SHCA_O_DEVICES, "3"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, "32 nodes with 3 devices") != NULL);
	t_eq(set(SHCA_O_DEVICES, "1"), 0);
	strcpy(config.text[SHCA_O_LINK], "fast");
	t_eq(shca_config_finish(&config, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, "link") != NULL);
	strcpy(config.text[SHCA_O_LINK], "off");
	t_eq(set(SHCA_O_LINK_LAYER, "ethernet"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
	t_eq(set(SHCA_O_PKEYS, "0xffff,0x8001"), 0);
	t_eq(shca_config_finish(&config, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, "an Ethernet port has the P_Key 0xffff alone") != NULL);
}

/* Checks that the trap of rdtsc is refused where CPUs don't have the instruction. */
static void trap_of_tsc(void **state)
{
	(void)state;
	t_eq(set(SHCA_O_CLOCK_TSC, "trap"), 0);
#ifdef __x86_64__
	t_eq(shca_config_finish(&config, err, sizeof(err)), 0);
#else
	t_eq(shca_config_finish(&config, err, sizeof(err)), -EINVAL);
	t_holds(strstr(err, "have the instruction rdtsc") != NULL);
#endif
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(choices, fresh),
		cmocka_unit_test_setup(ranges, fresh),
		cmocka_unit_test_setup(pkeys, fresh),
		cmocka_unit_test_setup(cpus, fresh),
		cmocka_unit_test_setup(memlock, fresh),
		cmocka_unit_test_setup(link_model, fresh),
		cmocka_unit_test_setup(names, fresh),
		cmocka_unit_test_setup(formats, fresh),
		cmocka_unit_test_setup(messages, fresh),
		cmocka_unit_test_setup(files, fresh),
		cmocka_unit_test_setup(environment, fresh),
		cmocka_unit_test_setup(precedence, fresh),
		cmocka_unit_test_setup(finish_checks, fresh),
		cmocka_unit_test_setup(trap_of_tsc, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
