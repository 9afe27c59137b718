/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const status_name[] = {
	[REPORT_OK] = "ok",
	[REPORT_LACKS] = "lacks",
	[REPORT_BAD] = "bad",
};

/* Adds a value that was just made to an object. Without memory there is no report. */
static void put(json_t *object, const char *key, json_t *value)
{
	if (!json_object_set_new(object, key, value))
		return;
	fputs("tupleq-check: There is no memory for the report.\n", stderr);
	exit(EXIT_FAILURE);
}

/* Returns a text as JSON, or null if there is none. Names of devices may be no UTF-8. */
static json_t *text(const char *s)
{
	json_t *made = s ? json_string(s) : json_null();

	return made ? made : json_string("?");
}

/* Adds an object to a list of the port, and returns it. */
static json_t *append(struct report *report, const char *list)
{
	json_t *object = json_object();

	if (!json_array_append_new(json_object_get(report->port, list), object))
		return object;
	fputs("tupleq-check: There is no memory for the report.\n", stderr);
	exit(EXIT_FAILURE);
}

void report_begin(struct report *report, bool json)
{
	char host[256] = "";

	*report = (struct report){.json = json, .root = json_object()};
	gethostname(host, sizeof(host) - 1);
	put(report->root, "version", text(PACKAGE_VERSION));
	put(report->root, "host", text(host));
	put(report->root, "works", json_false());
	put(report->root, "because", json_null());
	put(report->root, "advice", json_null());
	put(report->root, "ports", json_array());
}

void report_port(struct report *report, const char *device, unsigned number)
{
	json_t *ports = json_object_get(report->root, "ports");

	report->port = json_object();
	if (json_array_append_new(ports, report->port))
		report->port = NULL;
	put(report->port, "device", text(device));
	put(report->port, "port", number ? json_integer(number) : json_null());
	put(report->port, "works", json_null());
	put(report->port, "because", json_null());
	put(report->port, "advice", json_null());
	put(report->port, "facts", json_array());
	put(report->port, "tests", json_array());
	put(report->port, "prices", json_array());
	report->bad = false;
	if (number)
		snprintf(report->name, sizeof(report->name), "%s port %u", device, number);
	else
		snprintf(report->name, sizeof(report->name), "%s", device);
	if (!report->json)
		printf("%s\n", report->name);
}

/* Remembers the first reason why a port doesn't work. */
static void turn_bad(struct report *report, const char *why, const char *advice)
{
	if (report->bad)
		return;
	report->bad = true;
	snprintf(report->why, sizeof(report->why), "%s", why);
	snprintf(report->advice, sizeof(report->advice), "%s", advice);
}

void report_fact(struct report *report, enum report_status status, const char *name,
		 const char *found, const char *why, const char *advice)
{
	json_t *fact = append(report, "facts");

	put(fact, "name", text(name));
	put(fact, "status", text(status_name[status]));
	put(fact, "found", text(found));
	put(fact, "because", text(status == REPORT_OK ? NULL : why));
	put(fact, "advice", text(status == REPORT_OK ? NULL : advice));
	if (status == REPORT_BAD)
		turn_bad(report, why, advice);
	if (report->json)
		return;
	printf("  %-6s %-14s %s\n", status_name[status], name, found);
	if (status == REPORT_LACKS)
		printf("  %-6s %-14s   %s; %s\n", "", "", why, advice);
	fflush(stdout);
}

static void put_test(struct report *report, const char *name, const char *status, const char *why)
{
	json_t *test = append(report, "tests");

	put(test, "name", text(name));
	put(test, "status", text(status));
	put(test, "because", text(why));
	if (report->json)
		return;
	printf("  %-6s %s%s%s\n", status, name, why ? ": " : "", why ? why : "");
	fflush(stdout);
}

void report_test(struct report *report, const char *name, const char *why, const char *advice)
{
	char reason[REPORT_TEXT];

	put_test(report, name, why ? "failed" : "ok", why);
	if (!why)
		return;
	snprintf(reason, sizeof(reason), "the test \"%s\" failed: %s", name, why);
	turn_bad(report, reason, advice);
}

void report_skipped(struct report *report, const char *name, const char *why)
{
	put_test(report, name, "not run", why);
}

void report_prices(struct report *report)
{
	if (!report->json)
		printf("  %-32s %10s %12s  %s\n", "price (us)", "bytes", "median", "[quartiles]");
}

/* Begins the object of a price, and in text its line. */
static json_t *begin_price(struct report *report, const char *name, size_t bytes)
{
	json_t *price = append(report, "prices");

	put(price, "name", text(name));
	put(price, "bytes", bytes ? json_integer((json_int_t)bytes) : json_null());
	put(price, "unit", text("us"));
	if (!report->json && bytes)
		printf("  %-32s %10zu ", name, bytes);
	else if (!report->json)
		printf("  %-32s %10s ", name, "");
	return price;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void report_price(struct report *report, const char *name, size_t bytes, double *samples,
		  unsigned n)
{
	json_t *price = begin_price(report, name, bytes);
	double median, q1, q3;

	qsort(samples, n, sizeof(*samples), compare);
	median = samples[n / 2];
	q1 = samples[n / 4];
	q3 = samples[n - 1 - n / 4];
	put(price, "median", json_real(median));
	put(price, "q1", json_real(q1));
	put(price, "q3", json_real(q3));
	put(price, "samples", json_integer(n));
	put(price, "because", json_null());
	if (report->json)
		return;
	printf("%12.3f  [%.3f, %.3f]\n", median, q1, q3);
	fflush(stdout);
}

void report_no_price(struct report *report, const char *name, size_t bytes, const char *why)
{
	json_t *price = begin_price(report, name, bytes);

	put(price, "median", json_null());
	put(price, "q1", json_null());
	put(price, "q3", json_null());
	put(price, "samples", json_integer(0));
	put(price, "because", text(why));
	if (!report->json)
		printf("%12s  %s\n", "-", why);
}

bool report_verdict(struct report *report)
{
	put(report->port, "works", json_boolean(!report->bad));
	if (report->bad) {
		put(report->port, "because", text(report->why));
		put(report->port, "advice", text(report->advice));
	} else {
		report->working++;
		put(report->root, "works", json_true());
	}
	if (report->json)
		return !report->bad;
	if (report->bad)
		printf("%s: no, because %s; %s.\n", report->name, report->why, report->advice);
	else
		printf("%s: works\n", report->name);
	fflush(stdout);
	return !report->bad;
}

void report_nothing(struct report *report, const char *why, const char *advice)
{
	put(report->root, "because", text(why));
	put(report->root, "advice", text(advice));
	if (!report->json)
		printf("TupleQ doesn't work on this host, because %s; %s.\n", why, advice);
}

int report_end(struct report *report)
{
	int failed = 0;

	if (report->json) {
		failed = json_dumpf(report->root, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(report->root);
	return failed || fflush(stdout) || ferror(stdout) ? -1 : 0;
}
