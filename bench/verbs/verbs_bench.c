/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_bench.c - speed of a verbs device between two processes of one machine, against the machine
 * without verbs. The tables below are all that is measured, in order; bench/VERBS.md explains
 * them.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/parse.h"
#include "report.h"
#include "runs.h"

#define SMALL   8
#define LARGE   (1u << 20)
#define MAX_LEN (4u << 20)
#define SIZES   23 /* 1 B .. 4 MiB */

#define BARE(k, text, f, u, b) .key = k, .label = text, .fn = f, .unit = u, .base = b
#define VERB(k, text, f, q, o, u, b)                                                     \
	.key = k, .label = text, .fn = f, .kind = LANE_##q, .op = IBV_WR_##o, .unit = u, \
	.base = b, .uses_lane = true

static struct row latency_rows[] = {
	{BARE("bare", "bare shared memory", run_bare_pingpong, "us", -1), .len = SMALL},
	{VERB("xrc_send", "XRC SEND", run_send_pingpong, XRC, SEND, "us", 0), .len = SMALL,
	 .target = TARGET_RATIO_MAX, .limit = 8},
	{VERB("rc_send", "RC SEND", run_send_pingpong, RC, SEND, "us", 0), .len = SMALL},
	{VERB("rc_write", "RC WRITE, polling memory", run_write_pingpong, RC, RDMA_WRITE, "us", 0),
	 .len = SMALL},
	{VERB("ud_send", "UD SEND", run_send_pingpong, UD, SEND, "us", 0), .len = SMALL},
};

static struct row bandwidth_rows[] = {
	{BARE("bare", "bare process_vm_writev", run_vm_writev, "GB/s", -1), .len = LARGE,
	 .uses_vm = true},
	{VERB("rc_send", "RC SEND", run_bandwidth, RC, SEND, "GB/s", 0), .len = LARGE,
	 .target = TARGET_RATIO_MIN, .limit = 0.85},
	{VERB("xrc_send", "XRC SEND", run_bandwidth, XRC, SEND, "GB/s", 0), .len = LARGE,
	 .target = TARGET_RATIO_MIN, .limit = 0.85},
	{VERB("rc_write", "RC WRITE", run_bandwidth, RC, RDMA_WRITE, "GB/s", 0), .len = LARGE,
	 .target = TARGET_RATIO_MIN, .limit = 0.85},
	{VERB("xrc_write", "XRC WRITE", run_bandwidth, XRC, RDMA_WRITE, "GB/s", 0), .len = LARGE,
	 .target = TARGET_RATIO_MIN, .limit = 0.85},
	{VERB("rc_send_events", "RC SEND, both sides sleep until events", run_bandwidth, RC, SEND,
	      "GB/s", 0),
	 .len = LARGE, .events = true},
	{VERB("rc_write_events", "RC WRITE, the sender sleeps until events", run_bandwidth, RC,
	      RDMA_WRITE, "GB/s", 0),
	 .len = LARGE, .events = true},
};

static struct row rate_rows[] = {
	{BARE("bare", "bare shared-memory ring", run_bare_ring, "M/s", -1), .len = SMALL},
	{VERB("rc_send", "RC SEND", run_rate, RC, SEND, "M/s", 0), .len = SMALL,
	 .target = TARGET_VALUE_MIN, .limit = 5},
	{VERB("xrc_send", "XRC SEND", run_rate, XRC, SEND, "M/s", 0), .len = SMALL,
	 .target = TARGET_VALUE_MIN, .limit = 5},
};

#define POST_ROWS(name, q, at)                                                                 \
	{VERB(name "_transfer", #q " SEND, post to completion", run_post, q, SEND, "us", -1),  \
	 .len = LARGE, .max_count = POST_MOST},                                                \
		{VERB(name "_post", #q " SEND, ibv_post_send alone", NULL, q, SEND, "us", at), \
		 .len = LARGE, .target = TARGET_RATIO_MAX, .limit = 0.05},                     \
	{                                                                                      \
		VERB(name "_overlap", #q " SEND, added to a computation", NULL, q, SEND, "us", \
		     at),                                                                      \
			.len = LARGE                                                           \
	}

static struct row post_rows[] = {POST_ROWS("rc", RC, 0), POST_ROWS("xrc", XRC, 3)};

#define ROWS(r) .row = r, .nrows = sizeof r / sizeof r[0]

static struct group groups[] = {
	{.key = "latency",
	 .title = "Latency of 8 B, half a round trip",
	 ROWS(latency_rows),
	 .pinned = true},
	{.key = "bandwidth", .title = "Bandwidth of 1 MiB messages, one way", ROWS(bandwidth_rows)},
	{.key = "rate", .title = "Rate of 8 B messages, one way", ROWS(rate_rows), .pinned = true},
	{.key = "post", .title = "Cost of posting 1 MiB, and overlap", ROWS(post_rows)},
};
#define GROUPS (sizeof groups / sizeof groups[0])

static const struct row sweep_rows[] = {
	{VERB("rc_send_latency", "RC SEND", run_send_pingpong, RC, SEND, "us", -1)},
	{VERB("xrc_send_latency", "XRC SEND", run_send_pingpong, XRC, SEND, "us", -1)},
	{VERB("rc_write_latency", "RC WRITE", run_write_pingpong, RC, RDMA_WRITE, "us", -1)},
	{BARE("vm_writev", "vm_writev", run_vm_writev, "GB/s", -1), .uses_vm = true},
	{VERB("rc_send_bandwidth", "RC SEND", run_bandwidth, RC, SEND, "GB/s", 3)},
	{VERB("xrc_send_bandwidth", "XRC SEND", run_bandwidth, XRC, SEND, "GB/s", 3)},
	{VERB("rc_write_bandwidth", "RC WRITE", run_bandwidth, RC, RDMA_WRITE, "GB/s", 3)},
};
#define SWEEP_ROWS (sizeof sweep_rows / sizeof sweep_rows[0])

static struct row sweep_row[SIZES][SWEEP_ROWS];
static struct group sweep[SIZES];

/* Ends the program before the measurement if the output file can't be written. */
static void check_output(const struct bench *bench)
{
	FILE *f = bench->output ? fopen(bench->output, "a") : NULL;

	if (f)
		fclose(f);
	else if (bench->output)
		die("%s can't be written (%s); give --output another file", bench->output,
		    strerror(errno));
}

/* Makes the groups of the table by size. Returns their number. */
static unsigned make_sweep(const struct bench *bench)
{
	unsigned n;

	for (n = 0; n < SIZES && 1u << n <= bench->max_size; n++) {
		memcpy(sweep_row[n], sweep_rows, sizeof sweep_rows);
		for (unsigned i = 0; i < SWEEP_ROWS; i++)
			sweep_row[n][i].len = 1u << n;
		sweep[n] = (struct group){
			.key = "size", .title = "Sizes", .row = sweep_row[n], .nrows = SWEEP_ROWS};
	}
	return n;
}

static unsigned parse_number(const char *option, const char *text, unsigned min, unsigned max)
{
	int64_t value;

	if (parse_int(text, min, max, &value))
		die("--%s wants a number from %u to %u, not \"%s\"", option, min, max, text);
	return (unsigned)value;
}

/* Marks the tables of a comma-separated list as wanted, and no others. */
static void choose_tables(struct bench *bench, char *list)
{
	bench->sweep = false;
	for (unsigned i = 0; i < GROUPS; i++)
		groups[i].unwanted = true;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		unsigned i = 0;

		while (i < GROUPS && strcmp(name, groups[i].key) != 0)
			i++;
		if (i < GROUPS)
			groups[i].unwanted = false;
		else if (!strcmp(name, "size"))
			bench->sweep = true;
		else
			die("there is no table \"%s\" for --only; see --help", name);
	}
}

static const struct argp_option options[] = {
	{"rounds", 'r', "N", 0, "rounds of which the median is shown (11)", 0},
	{"round-ms", 't', "N", 0, "time of one row in one round (20)", 0},
	{"sweep-ms", 's', "N", 0, "time of one row in one round of the table by size (4)", 0},
	{"only", 'n', "LIST", 0, "of the tables latency,bandwidth,rate,post,size only these", 0},
	{"max-size", 'm', "N", 0,
	 "largest message of that table, bytes, 1048576 to 4194304 (4194304)", 0},
	{"window", 'w', "N", 0, "large sends outstanding in the bandwidth tests, 1 to 128 (16)", 0},
	{"pin", 'p', NULL, 0, "latency and rate: pin each process to a CPU of its own", 0},
	{"device", 'd', "NAME", 0, "device to measure (the first)", 0},
	{"output", 'o', "FILE", 0, "write all results as JSON", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct bench *bench = state->input;

	switch (key) {
	case 'r':
		bench->rounds = parse_number("rounds", arg, 1, 10001);
		break;
	case 't':
		bench->round_ms = parse_number("round-ms", arg, 1, 10000);
		break;
	case 's':
		bench->sweep_ms = parse_number("sweep-ms", arg, 1, 10000);
		break;
	case 'n':
		choose_tables(bench, arg);
		break;
	case 'm':
		bench->max_size = parse_number("max-size", arg, LARGE, MAX_LEN);
		break;
	case 'w':
		bench->window = parse_number("window", arg, 1, 128);
		break;
	case 'p':
		bench->pin = true;
		break;
	case 'd':
		bench->device = arg;
		break;
	case 'o':
		bench->output = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Measures a verbs device between two processes of this machine, with an adapter or "
	       "under "
	       "softhca run.",
};

/* Opens a file for both processes, whose inode names the XRC domain. */
static int xrc_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/verbs_bench.XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		die("no temporary file %s: %s", path, strerror(errno));
	unlink(path);
	return fd;
}

static void try_vm_writev(struct bench *bench)
{
	struct iovec from = {.iov_base = bench->end.send_buf, .iov_len = SMALL};
	struct iovec to = {.iov_base = (void *)(uintptr_t)bench->pair.sh->info[1].recv_buf,
			   .iov_len = SMALL};

	if (!bench->pair.rank)
		bench->pair.sh->vm_allowed = process_vm_writev(bench->pair.sh->info[1].pid, &from,
							       1, &to, 1, 0) == SMALL;
	pair_barrier(&bench->pair);
}

int main(int argc, char **argv)
{
	struct bench b = {.rounds = 11,
			  .round_ms = 20,
			  .sweep_ms = 4,
			  .window = 16,
			  .max_size = MAX_LEN,
			  .sweep = true};
	unsigned nsweep;
	int fd;

	argp_parse(&argp, argc, argv, 0, NULL, &b);
	check_output(&b);
	fd = xrc_file();
	pair_start(&b.pair);
	endpoint_open(&b.end, &b.pair, b.device, b.max_size, fd);
	endpoint_check(&b.end);
	try_vm_writev(&b);
	if (!b.pair.rank)
		report_head(&b);
	for (unsigned i = 0; i < GROUPS; i++) {
		if (groups[i].unwanted)
			continue;
		group_run(&b, &groups[i], b.round_ms);
		if (!b.pair.rank)
			report_group(&b, &groups[i]);
	}
	nsweep = b.sweep ? make_sweep(&b) : 0;
	for (unsigned i = 0; i < nsweep; i++)
		group_run(&b, &sweep[i], b.sweep_ms);
	if (!b.pair.rank) {
		report_sweep(&b, sweep, nsweep);
		report_json(&b, groups, GROUPS, sweep, nsweep);
	}
	for (unsigned i = 0; i < GROUPS; i++)
		group_free(&groups[i]);
	for (unsigned i = 0; i < nsweep; i++)
		group_free(&sweep[i]);
	endpoint_close(&b.end);
	pair_end(&b.pair);
	return 0;
}
