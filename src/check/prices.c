/* SPDX-License-Identifier: BSD-3-Clause */
#include "prices.h"

#include <stdio.h>

#include "measure.h"

/* Samples of a price, and the time after which no more are taken. */
#define SAMPLES     201u
#define SAMPLES_MIN 5u
#define BUDGET_US   200e3

/* The prices that a measurement finds out together. */
#define TOGETHER 3

struct price {
	const char *name[TOGETHER];
	measure_fn *measure;
	size_t bytes;
	uint8_t rnr_timer; /* code of the target QP; 0: that of libtupleq */
	unsigned srqs;     /* that messages go to in turn; 0: the end's own */
};

/* The sizes of registrations, the codes of RNR timers and the numbers of SRQs. */
#define REGISTRATION(n)                                                                      \
	{                                                                                    \
		.name = {"ibv_reg_mr()", "ibv_dereg_mr()"}, .measure = measure_registration, \
		.bytes = n,                                                                  \
	}
#define PAUSE(code)                                                                 \
	{                                                                           \
		.name = {"RNR pause, timer code " #code}, .measure = measure_pause, \
		.rnr_timer = code,                                                  \
	}
#define CROWD(n)                                                                   \
	{                                                                          \
		.name = {"a message, SRQs in use: " #n}, .measure = measure_crowd, \
		.bytes = MEASURE_MESSAGE, .srqs = n,                               \
	}
#define PRICE(function, size, ...)                                         \
	{                                                                  \
		.name = {__VA_ARGS__}, .measure = function, .bytes = size, \
	}

static const struct price prices[] = {
	PRICE(measure_clock, 0, "read the clock"),
	PRICE(measure_srq, 0, "create an SRQ", "destroy an SRQ"),
	PRICE(measure_qp, 0, "create a QP", "destroy a QP"),
	PRICE(measure_open, 0, "ibv_open_qp()", "close an opened QP"),
	PRICE(measure_modify, 0, "a QP to INIT", "a QP to RTR", "a QP to RTS"),
	REGISTRATION(4096),
	REGISTRATION(65536),
	REGISTRATION(1048576),
	REGISTRATION(16777216),
	PRICE(measure_post, MEASURE_MESSAGE, "post a send"),
	PRICE(measure_inline, MEASURE_MESSAGE, "post a send inline"),
	PRICE(measure_list, MEASURE_MESSAGE, "post 16 sends as a list, each"),
	PRICE(measure_receive, END_SLOT, "post a receive to an SRQ"),
	PRICE(measure_poll, 0, "poll, a hit", "poll, a miss"),
	PRICE(measure_event, 0, "arm a CQ", "post until event", "post until completion"),
	PRICE(measure_stream, END_SLOTS *END_SLOT, "a message of a stream"),
	PAUSE(1),
	PAUSE(4),
	PAUSE(8),
	PAUSE(12),
	PAUSE(14),
	CROWD(1),
	CROWD(16),
	CROWD(128),
	CROWD(1024),
	CROWD(8192),
};
#define PRICES (sizeof(prices) / sizeof(prices[0]))

/* Takes the samples. Returns how many; 0: the first one failed. */
static unsigned sample(struct end *end, const struct price *price,
		       double samples[TOGETHER][SAMPLES])
{
	double us[TOGETHER] = {0}, begin = measure_now();
	unsigned n;

	for (n = 0; n < SAMPLES && (n < SAMPLES_MIN || measure_now() - begin < BUDGET_US); n++) {
		if (!price->measure(end, price->bytes, us))
			return 0;
		for (unsigned i = 0; i < TOGETHER; i++)
			samples[i][n] = us[i];
	}
	return n;
}

/* Measures with objects of its own, so that a failure has no consequences. */
static void report_one(struct report *report, const struct port *port, const struct price *price)
{
	static double samples[TOGETHER][SAMPLES];
	struct end end;
	unsigned n = 0;

	if (end_open(&end, port, -1)) {
		if (price->rnr_timer)
			end.rnr_timer = price->rnr_timer;
		if (end_connect(&end) && (!price->srqs || measure_crowd_begin(&end, price->srqs)))
			n = sample(&end, price, samples);
	}
	for (unsigned i = 0; i < TOGETHER && price->name[i]; i++) {
		if (!n) {
			report_no_price(report, price->name[i], price->bytes, end.why);
			continue;
		}
		report_price(report, price->name[i], price->bytes, samples[i], n);
	}
	measure_crowd_end();
	end_close(&end);
}

void prices_report(struct report *report, const struct port *port)
{
	report_prices(report);
	for (size_t i = 0; i < PRICES; i++)
		report_one(report, port, &prices[i]);
}
