/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of libportals on a device without on-demand paging.
 *
 * test_log, under "softhca run --odp off"
 */
#include <stdlib.h>
#include <string.h>

#include "../caught.h"
#include "side.h"

#define NO_PAGING "has no implicit on-demand paging on XRC"

struct settings {
	const char *log, *params; /* PORTALS_LOG and PORTALS_PARAMS; NULL: not set */
	const char *says;         /* part of the log; NULL: the log is empty */
};

static void set(const char *name, const char *value)
{
	if (value)
		t_ok(setenv(name, value, 1));
	else
		t_ok(unsetenv(name));
}

/* Opens and closes an interface with these settings, and checks the log. */
static void check(unsigned me, void *arg)
{
	const struct settings *settings = arg;
	struct t_caught caught;
	struct side side;
	const char *text;

	(void)me;
	set("PORTALS_LOG", settings->log);
	set("PORTALS_PARAMS", settings->params);
	t_catch(&caught);
	side_open(&side, 0, 1, SIDE_MATCHING);
	side_leave(&side);
	text = t_caught_end(&caught);
	if (settings->says ? !strstr(text, settings->says) : *text)
		t_fail("\"%s\" is expected, and the log says: %s",
		       settings->says ? settings->says : "", text);
}

/* If on-demand paging isn't asked for, only the level debug mentions it. */
static void test_default(void **state)
{
	struct settings none = {0}, debug = {.log = "debug", .says = NO_PAGING};

	(void)state;
	procs_run(1, NULL, check, &none);
	procs_run(1, NULL, check, &debug);
}

static void test_asked(void **state)
{
	struct settings on = {.params = "odp=1", .says = NO_PAGING}, off = {.params = "odp=0"};

	(void)state;
	procs_run(1, NULL, check, &on);
	procs_run(1, NULL, check, &off);
}

static void test_levels(void **state)
{
	struct settings error = {.log = "error", .params = "odp=1"},
			warn = {.log = "warn", .params = "odp=1", .says = NO_PAGING},
			other = {.log = "all", .says = "PORTALS_LOG = \"all\": it takes"};

	(void)state;
	procs_run(1, NULL, check, &error);
	procs_run(1, NULL, check, &warn);
	procs_run(1, NULL, check, &other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
