/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what is said: lines for people as they come, or one JSON document at the end. A report
 * has ports, and a port has facts, tests, prices and a verdict.
 */
#ifndef TUPLEQ_CHECK_REPORT_H
#define TUPLEQ_CHECK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The bytes of a sentence, or of a part of it. */
#define REPORT_TEXT 320

enum report_status {
	REPORT_OK,
	REPORT_LACKS, /* TupleQ works without it, but differently */
	REPORT_BAD,   /* TupleQ doesn't work */
};

struct report {
	bool json;
	json_t *root, *port;   /* the document, and the port that is looked at */
	char name[80];         /* of the port, as in the verdict */
	bool bad;              /* the port doesn't work */
	char why[REPORT_TEXT]; /* the first reason why not, and what to do */
	char advice[REPORT_TEXT];
	unsigned working; /* ports that work */
};

/* Begins a report: for machines if `json`, else for people. */
void report_begin(struct report *report, bool json);

/* Begins the part of a port; number 0: of a device whose ports can't be looked at. */
void report_port(struct report *report, const char *device, unsigned number);

/*
 * Adds a fact: its name and what was found. If that isn't REPORT_OK, `why` is the consequence and
 * `advice` what to do; a reason follows "no, because" if the status is REPORT_BAD.
 */
void report_fact(struct report *report, enum report_status status, const char *name,
		 const char *found, const char *why, const char *advice);

/* Adds a test that passed (why is NULL) or failed for this reason. */
void report_test(struct report *report, const char *name, const char *why, const char *advice);

/* Adds a test that could not run, for this reason. */
void report_skipped(struct report *report, const char *name, const char *why);

/* Begins the prices of a port. */
void report_prices(struct report *report);

/* Adds a price, with the median and the quartiles of n samples in microseconds, which get sorted;
 * bytes: the size that the price belongs to, 0 if it has none. */
void report_price(struct report *report, const char *name, size_t bytes, double *samples,
		  unsigned n);

/* Adds a price that could not be found out. */
void report_no_price(struct report *report, const char *name, size_t bytes, const char *why);

/* Ends the part of a port, before its prices: gives the verdict. Returns true if it works. */
bool report_verdict(struct report *report);

/* Says that there is no port to look at, why and what to do. */
void report_nothing(struct report *report, const char *why, const char *advice);

/* Ends the report. Returns 0, or -1 if it could not be written. */
int report_end(struct report *report);

#endif
