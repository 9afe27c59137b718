/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_bench.c - speed of a verbs device between two processes of one machine, against the machine
 * without verbs. The tables below are all that is measured, in order; bench/VERBS.md explains
 * them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

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

static const char usage[] =
	"Usage: softhca run -- verbs_bench [options]\n"
	"Measures a verbs device between two processes of this machine.\n"
	"  --rounds N      rounds of which the median is shown (11)\n"
	"  --round-ms N    time of one row in one round (20)\n"
	"  --sweep-ms N    time of one row in one round of the table by size (4)\n"
	"  --only LIST     of the tables latency,bandwidth,rate,post,size only these\n"
	"  --max-size N    largest message of that table, bytes, 1048576 to 4194304 (4194304)\n"
	"  --window N      large sends outstanding in the bandwidth tests, 1 to 128 (16)\n"
	"  --pin           latency and rate: pin each process to a CPU of its own\n"
	"  --device NAME   device to measure (the first)\n"
	"  --output FILE   write all results as JSON\n"
	"  --help          this text\n";

static unsigned parse_number(const char *option, const char *text, unsigned min, unsigned max)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || end == text || v < min || v > max)
		die("--%s wants a number from %u to %u, not \"%s\"", option, min, max, text);
	return (unsigned)v;
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

static void parse_options(struct bench *bench, int argc, char **argv)
{
	static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
						{"round-ms", required_argument, NULL, 't'},
						{"sweep-ms", required_argument, NULL, 's'},
						{"only", required_argument, NULL, 'n'},
						{"max-size", required_argument, NULL, 'm'},
						{"window", required_argument, NULL, 'w'},
						{"pin", no_argument, NULL, 'p'},
						{"device", required_argument, NULL, 'd'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	int c, which = 0;

	while ((c = getopt_long(argc, argv, "", options, &which)) != -1) {
		const char *name = options[which].name;

		switch (c) {
		case 'r':
			bench->rounds = parse_number(name, optarg, 1, 10001);
			break;
		case 't':
			bench->round_ms = parse_number(name, optarg, 1, 10000);
			break;
		case 's':
			bench->sweep_ms = parse_number(name, optarg, 1, 10000);
			break;
		case 'n':
			choose_tables(bench, optarg);
			break;
		case 'm':
			bench->max_size = parse_number(name, optarg, LARGE, MAX_LEN);
			break;
		case 'w':
			bench->window = parse_number(name, optarg, 1, 128);
			break;
		case 'p':
			bench->pin = true;
			break;
		case 'd':
			bench->device = optarg;
			break;
		case 'o':
			bench->output = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind < argc)
		die("\"%s\" is no option; see --help", argv[optind]);
}

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

	parse_options(&b, argc, argv);
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
