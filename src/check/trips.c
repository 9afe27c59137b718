/* SPDX-License-Identifier: BSD-3-Clause */
/* Each process sends by a connection of its own into the other one's SRQ. */
#include "trips.h"

#include <errno.h>
#include <stdio.h>

#include "end.h"
#include "measure.h"
#include "partner.h"

/* Round trips of a size, at most; those that the second process is asked for at once, of which the
 * first aren't counted; and the time after which no more are asked for. */
#define SAMPLES   200u
#define AT_ONCE   20u
#define BUDGET_US 200e3

static const uint32_t sizes[] = {8, 64, 512, 4096, 16384, 65536};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const char name[] = "half a round trip";

/* The second process's sentence becomes the end's. */
static bool partner_failed(struct end *end, const struct partner *partner)
{
	return end_fail(end, 0, "%s", partner->answer.why);
}

static bool begin(struct end *end, struct partner *partner, const struct port *port, FILE *file)
{
	const struct partner_question connect = {.what = PARTNER_CONNECT};

	if (!file)
		return end_fail(end, errno, "tmpfile() for an XRC domain");
	if (!end_open(end, port, fileno(file)) || !end_connect(end))
		return false;
	return (partner_start(partner, port, fileno(file)) && partner_ask(partner, &connect)) ||
	       partner_failed(end, partner);
}

/* Sends a message, and waits until it has come back. */
static bool trip(struct end *end, const struct end_work *work)
{
	return end_receive(end, 0, work->len, false) && end_post(end, work) &&
	       end_wait_received(end) && end_wait_sent(end, 1);
}

/* Measures AT_ONCE round trips, one by one. The second process sends a message before them,
 * when it has posted its receive. */
static bool measure_some(struct end *end, struct partner *partner, uint32_t bytes, double *samples)
{
	const struct partner_question echo = {
		.what = PARTNER_ECHO, .count = AT_ONCE, .bytes = bytes, .value = end->srqn};
	const struct end_work work = {
		.opcode = IBV_WR_SEND, .len = bytes, .srqn = partner->answer.srqn};
	double start;

	if (!end_receive(end, 0, bytes, false))
		return false;
	if (!partner_tell(partner, &echo))
		return partner_failed(end, partner);
	if (!end_wait_received(end))
		return false;
	for (unsigned i = 0; i < AT_ONCE; i++) {
		start = measure_now();
		if (!trip(end, &work))
			return false;
		samples[i] = (measure_now() - start) / 2;
	}
	return partner_hear(partner) || partner_failed(end, partner);
}

/* Returns the number of samples; 0: a message failed. */
static unsigned measure(struct end *end, struct partner *partner, uint32_t bytes, double *samples)
{
	double start = measure_now();
	unsigned n;

	if (!measure_some(end, partner, bytes, samples))
		return 0;
	for (n = 0; n < SAMPLES && (!n || measure_now() - start < BUDGET_US); n += AT_ONCE)
		if (!measure_some(end, partner, bytes, samples + n))
			return 0;
	return n;
}

bool trips_measure(struct report *report, struct end *end, struct partner *partner, bool works)
{
	static double samples[SAMPLES];

	for (size_t i = 0; i < SIZES; i++) {
		unsigned n = works ? measure(end, partner, sizes[i], samples) : 0;

		works = n > 0;
		if (works)
			report_price(report, name, sizes[i], samples, n);
		else
			report_no_price(report, name, sizes[i], end->why);
	}
	return works;
}

void trips_report(struct report *report, const struct port *port)
{
	struct partner partner = {.socket = -1};
	struct end end = {0};
	FILE *file = tmpfile();
	bool works = trips_measure(report, &end, &partner, begin(&end, &partner, port, file));

	partner_end(&partner, !works);
	end_close(&end);
	if (file)
		fclose(file);
}
