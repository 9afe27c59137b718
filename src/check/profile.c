/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "profile.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "end.h"
#include "measure.h"

/* The default of softhca for a wait in the kernel. */
#define WAIT_US 0.5

/* The sizes by which a price that grows with the size is found out. */
#define PAGE        4096
#define LARGE       16777216
#define TRIP_SHORT  8
#define TRIP_MIDDLE 16384
#define TRIP_LONG   65536

FILE *profile_create(const char *path)
{
	return fopen(path, "wxe");
}

/* Returns a median in microseconds, or not a number if it could not be measured. */
static double median(const struct report *report, const char *name, size_t bytes)
{
	const json_t *prices = json_object_get(report->port, "prices"), *price;
	size_t i;

	json_array_foreach(prices, i, price)
	{
		if (!strcmp(json_string_value(json_object_get(price, "name")), name) &&
		    (size_t)json_integer_value(json_object_get(price, "bytes")) == bytes &&
		    json_is_real(json_object_get(price, "median")))
			return json_real_value(json_object_get(price, "median"));
	}
	return NAN;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns the median of the verbs that go through the kernel and register nothing. */
static double kernel_call(const struct report *report)
{
	static const char *const names[] = {
		"create an SRQ", "destroy an SRQ", "create a QP",
		"destroy a QP",  "ibv_open_qp()",  "close an opened QP",
		"a QP to INIT",  "a QP to RTR",    "a QP to RTS",
	};
	double found[sizeof(names) / sizeof(names[0])], us;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		us = median(report, names[i], 0);
		if (!isnan(us))
			found[n++] = us;
	}
	qsort(found, n, sizeof(*found), compare);
	return n ? found[n / 2] : NAN;
}

/* Writes a time, or a comment if it could not be measured. */
static void write_time(FILE *file, const char *name, double us, const char *how)
{
	if (isnan(us))
		fprintf(file, "# %s: not measured\n", name);
	else
		fprintf(file, "%s = %.0fns # %s\n", name, us > 0 ? us * 1e3 : 0, how);
}

/* Messages of the adapter to itself pass no cable and no switch. */
static void write_link(FILE *file, const struct report *report)
{
	double post = median(report, "post a send inline", MEASURE_MESSAGE);
	double trip = median(report, "half a round trip", TRIP_SHORT);
	double slope = median(report, "half a round trip", TRIP_LONG) -
		       median(report, "half a round trip", TRIP_MIDDLE);
	double hit = median(report, "poll, a hit", 0), latency;

	if (isnan(post))
		post = median(report, "post a send", MEASURE_MESSAGE);
	/* Posts a receive and a send, polls for the message, and for every other one for the send.
	 */
	latency = trip - median(report, "post a receive to an SRQ", END_SLOT) - post - 1.5 * hit;
	if (isnan(latency) || isnan(slope) || slope <= 0) {
		fputs("# link: not measured\n", file);
		return;
	}
	fprintf(file,
		"# Half a round trip of %d bytes less its verbs, and its growth from %d to %d "
		"bytes: "
		"from the adapter\n# to itself, without a cable or a switch.\n"
		"link = latency=%.0fns,bandwidth=%.3fGB/s\n",
		TRIP_SHORT, TRIP_MIDDLE, TRIP_LONG, latency > 0 ? latency * 1e3 : 0,
		(TRIP_LONG - TRIP_MIDDLE) / slope / 1e3);
}

static void write_prices(FILE *file, const struct report *report)
{
	double clock = median(report, "read the clock", 0);
	double miss = median(report, "poll, a miss", 0) - clock / MEASURE_POLLS;
	double page = median(report, "ibv_reg_mr()", PAGE);
	double event =
		median(report, "post until event", 0) - median(report, "post until completion", 0);

	write_time(file, "price-post", median(report, "post a send", MEASURE_MESSAGE), "measured");
	write_time(file, "price-recv", median(report, "post a receive to an SRQ", END_SLOT),
		   "measured");
	write_time(file, "price-poll", miss, "measured: a poll that finds nothing");
	write_time(file, "price-cqe", median(report, "poll, a hit", 0) - miss - clock,
		   "measured: a poll that finds a completion, less one that doesn't");
	write_time(file, "price-arm", median(report, "arm a CQ", 0) - clock, "measured");
	write_time(file, "price-event", event,
		   "measured: post until event, less post until completion");
	write_time(file, "price-reg", page, "measured: a page");
	write_time(file, "price-page",
		   (median(report, "ibv_reg_mr()", LARGE) - page) / (LARGE / PAGE - 1.0),
		   "measured: 16 MiB");
	write_time(file, "price-call", kernel_call(report),
		   "measured: the median of the verbs on SRQs and QPs");
	write_time(file, "price-time", clock, "measured");
	write_time(file, "price-wait", WAIT_US, "assumed");
}

static void write_limits(FILE *file, const struct port *port)
{
	const struct ibv_device_attr *attr = &port->attr;

	fprintf(file, "vendor-id = %u\npart-id = %u\nlink-layer = %s\nmtu = %u\n", attr->vendor_id,
		attr->vendor_part_id,
		port->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband",
		128u << port->port.active_mtu);
	fprintf(file, "max-qp = %d\nmax-qp-wr = %d\nmax-sge = %d\nmax-rd-atomic = %d\n",
		attr->max_qp, attr->max_qp_wr, attr->max_sge, attr->max_qp_rd_atom);
	fprintf(file,
		"max-cq = %d\nmax-cqe = %d\nmax-srq = %d\nmax-srq-wr = %d\nmax-srq-sge = %d\n",
		attr->max_cq, attr->max_cqe, attr->max_srq, attr->max_srq_wr, attr->max_srq_sge);
	fprintf(file, "max-mr = %d\nmax-pd = %d\nmax-msg-sz = %u\n", attr->max_mr, attr->max_pd,
		port->port.max_msg_sz);
	if (attr->max_mr_size > INT64_MAX)
		fputs("max-mr-size = unlimited\n", file);
	else
		fprintf(file, "max-mr-size = %llu\n", (unsigned long long)attr->max_mr_size);
}

void profile_write(FILE *file, const struct report *report, const struct port *port)
{
	fprintf(file, "# A profile of an adapter for \"softhca run --profile\", by "
		      "tupleq-check " PACKAGE_VERSION ".\n\n");
	write_link(file, report);
	fputs("\n# Medians.\n", file);
	write_prices(file, report);
	fputs("\n# What the adapter says.\n", file);
	write_limits(file, port);
}

bool profile_close(FILE *file, const char *path, bool keep)
{
	bool failed = ferror(file);

	failed |= fclose(file) != 0;
	if (failed || !keep)
		unlink(path);
	return !failed && keep;
}
