/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libportals logs on a device without on-demand paging.
 *
 * test_log, under "softhca run --odp off"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"

#define NO_PAGING "has no implicit on-demand paging on XRC"

struct settings {
	const char *log, *params; /* PORTALS_LOG and PORTALS_PARAMS; NULL: not set */
};

static void set(const char *name, const char *value)
{
	if (value)
		t_ok(setenv(name, value, 1));
	else
		t_ok(unsetenv(name));
}

/* Opens and closes an interface. Returns what was written to standard error meanwhile. */
static const char *written(void)
{
	static char text[4096];
	FILE *file = tmpfile();
	struct side side;
	int saved = dup(2);

	t_holds(file && saved >= 0);
	t_holds(dup2(fileno(file), 2) == 2);
	side_open(&side, 0, 1, SIDE_MATCHING);
	t_ptl_ok(PtlNIFini(side.ni));
	PtlFini();
	t_holds(dup2(saved, 2) == 2);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	close(saved);
	return text;
}

static void quiet(unsigned me, void *arg)
{
	const struct settings *settings = arg;
	const char *text;

	(void)me;
	set("PORTALS_LOG", settings->log);
	set("PORTALS_PARAMS", settings->params);
	text = written();
	if (*text)
		t_fail("the log says: %s", text);
}

static void says(unsigned me, void *arg)
{
	const struct settings *settings = arg;
	const char *text;

	(void)me;
	set("PORTALS_LOG", settings->log);
	set("PORTALS_PARAMS", settings->params);
	text = written();
	if (!strstr(text, NO_PAGING))
		t_fail("the log doesn't say \"" NO_PAGING "\" but: %s", text);
}

/* Nobody has asked for on-demand paging. */
static void test_default(void **state)
{
	struct settings none = {0}, debug = {.log = "debug"};

	(void)state;
	procs_run(1, NULL, quiet, &none);
	procs_run(1, NULL, says, &debug);
}

static void test_asked(void **state)
{
	struct settings on = {.params = "odp=1"}, off = {.params = "odp=0"};

	(void)state;
	procs_run(1, NULL, says, &on);
	procs_run(1, NULL, quiet, &off);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
