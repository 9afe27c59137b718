/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of pml_tupleq_stats, made at the beginning of MPI_Finalize by a hook of Open MPI. A
 * collective over MPI_COMM_WORLD still works there: del_procs and the component's finalize are
 * called after a fence, when peers may have exited. MPI_Finalize is collective, so the report may
 * wait for all processes.
 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pml.h"
#include "pvars.h"

/* The tuples that the report lists, and that each process sends: few enough for one screen. */
enum { TUPLES = 8 };

/* The counters of a process, or the sums over all processes. */
struct totals {
	uint64_t tuples; /* that the library has a record of */
	uint64_t counter[TUPLEQ_COUNTERS];
};

struct tuple {
	struct tq_tuple_info info;
	int32_t receiver;
};

_Static_assert(sizeof(struct totals) == (1 + TUPLEQ_COUNTERS) * sizeof(uint64_t),
	       "reduced as an array");

struct tq_tuple_info *mca_pml_tupleq_report_tuples(int *count)
{
	struct tq_tuple_info *info = NULL, *bigger;
	int size = 256, n;

	for (;; size *= 4) {
		bigger = realloc(info, size * sizeof(*info));
		if (!bigger)
			break;
		info = bigger;
		n = tq_tuple_infos(mca_pml_tupleq.ep, info, size);
		*count = n;
		if (n < size)
			return info;
	}
	free(info);
	*count = 0;
	return NULL;
}

static void collect(struct totals *mine, uint64_t *high, struct tuple *best, int rank)
{
	struct tq_tuple_info *info;
	int n, i;

	info = mca_pml_tupleq_report_tuples(&n);
	for (i = 0; i < n; i++) {
		if (i < TUPLES)
			best[i] = (struct tuple){.info = info[i], .receiver = rank};
	}
	mine->tuples = n;
	free(info);
	for (i = 0; i < TUPLEQ_COUNTERS && tq_counter_desc(i); i++) {
		mine->counter[i] = tq_counter(mca_pml_tupleq.ep, i);
		high[i] = tq_counter_high(mca_pml_tupleq.ep, i);
	}
}

static uint64_t messages(const struct tuple *tuple)
{
	return tuple->info.direct + tuple->info.traditional;
}

static int busier(const void *left, const void *right)
{
	uint64_t left_messages = messages(left), right_messages = messages(right);

	return left_messages < right_messages ? 1 : left_messages > right_messages ? -1 : 0;
}

static void print_tuples(FILE *out, struct tuple *tuples, int n)
{
	int i;

	qsort(tuples, n, sizeof(*tuples), busier);
	fprintf(out, "  %-10s %-10s %-12s %-12s %12s %12s %10s %8s\n", "context", "receiver",
		"source", "tag", "by the HCA", "by software", "promotions", "recalls");
	for (i = 0; i < n && i < TUPLES && messages(&tuples[i]); i++) {
		const struct tq_tuple_info *info = &tuples[i].info;

		fprintf(out, "  %-10u %-10d %-12d %-12d %12" PRIu64 " %12" PRIu64 " %10u %8u\n",
			info->ctx, tuples[i].receiver, info->source, info->tag, info->direct,
			info->traditional, info->promotions, info->recalls);
	}
}

static uint64_t counted(const struct totals *sum, const char *name)
{
	const struct tq_counter_desc *desc;

	for (int i = 0; i < TUPLEQ_COUNTERS && (desc = tq_counter_desc(i)); i++) {
		if (!strcmp(desc->name, name))
			return sum->counter[i];
	}
	return 0;
}

static void print_counters(FILE *out, const uint64_t *sum, const uint64_t *high)
{
	const struct tq_counter_desc *desc;
	int i;

	fprintf(out, "Counters: sums over all processes; for a level the highest value of one "
		     "process\n");
	for (i = 0; i < TUPLEQ_COUNTERS && (desc = tq_counter_desc(i)); i++) {
		uint64_t value = desc->level ? high[i] : sum[i];

		if (value)
			fprintf(out, "  %-24s %16" PRIu64 "  %s\n", desc->name, value, desc->help);
	}
}

/* Returns how many messages software has matched, or with the unit "_bytes" how many bytes. */
static uint64_t by_software(const struct totals *sum, const char *unit)
{
	static const char *const paths[] = {"eager", "copied", "rget", "rput", "pipelined"};
	uint64_t n = 0;
	char name[64];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(name, sizeof(name), "recv_%s%s", paths[i], unit);
		n += counted(sum, name);
	}
	return n;
}

static double percent(uint64_t part, uint64_t rest)
{
	return part ? 100.0 * (double)part / (double)(part + rest) : 0.0;
}

/* A reason why messages went to no queue is printed if it concerns at least one message in
 * ADVICE_FROM: advice on fewer would gain a user little. */
enum { ADVICE_FROM = 10 };

static void print_advice(FILE *out, const struct totals *sum, uint64_t all)
{
	static const struct {
		const char *counter, *text;
		const char *includes; /* counter of messages that have another reason; NULL: none */
	} reasons[] = {
		{"software_short",
		 "were short: to copy them takes less time than a queue for them. "
		 "(--mca pml_tupleq_promote_after 0 uses queues for messages of any length.)"},
		{"software_early",
		 "came to tuples without a queue because messages arrive before their receives. "
		 "A rendezvous is faster than to have the HCA hold them. Post receives earlier: "
		 "call MPI_Irecv before the computation that precedes the exchange. "
		 "(--mca pml_tupleq_giveback_after 0 uses queues nevertheless.)"},
		{"software_wildcard",
		 "came to tuples without a queue because of MPI_ANY_SOURCE, MPI_ANY_TAG or probes. "
		 "Name the source and the tag in receives where they are known."},
		{"software_limit", "came to tuples without a queue because the limit was reached. "
				   "Raise --mca pml_tupleq_tuples, or use fewer tags."},
		{"software_buffer",
		 "came to tuples without a queue because a queue can't take their buffers. Raise "
		 "--mca pml_tupleq_pieces for datatypes with gaps, and the limit of locked memory "
		 "(ulimit -l)."},
		{"not_asked_local",
		 "went to no queue because shared memory is faster within a node. "
		 "(--mca pml_tupleq_intranode hca has the HCA match them.)"},
		{"software_new",
		 "came to tuples that had sent too few messages to ask for a queue. Use tags again "
		 "rather than new ones, or try --mca pml_tupleq_promote_after 0.",
		 .includes = "not_asked_local"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		uint64_t n = counted(sum, reasons[i].counter);
		uint64_t other = reasons[i].includes ? counted(sum, reasons[i].includes) : 0;

		n -= other < n ? other : n;
		/* Reasons are counted on arrival and `all` on receipt, and the report's own
		 * messages may be in between. */
		if (n > all)
			n = all;
		if (n && n >= all / ADVICE_FROM)
			fprintf(out, "%.1f %% of the messages %s\n", percent(n, all - n),
				reasons[i].text);
	}
}

/* Prints how much went through shared memory, and where more could have. */
static void print_within_nodes(FILE *out, const struct totals *sum)
{
	uint64_t messages = counted(sum, "sent_ring"), missed = counted(sum, "rings_missed");
	uint64_t copied = counted(sum, "recv_copied"), refused = counted(sum, "copies_refused");

	if (messages)
		fprintf(out,
			"%" PRIu64 " eager and control messages (%" PRIu64
			" bytes) went through shared memory within nodes.\n",
			messages, counted(sum, "sent_ring_bytes"));
	if (copied)
		fprintf(out,
			"%" PRIu64 " messages (%" PRIu64
			" bytes) were copied from their senders' memory within nodes.\n",
			copied, counted(sum, "recv_copied_bytes"));
	if (missed)
		fprintf(out,
			"Within nodes %" PRIu64
			" pairs of processes use the adapter, one way at least, although shared "
			"memory was asked for: they have no IPC namespace in common (containers), "
			"or not enough rings (--mca pml_tupleq_rings).\n",
			missed);
	if (refused)
		fprintf(out,
			"Within nodes %" PRIu64 " times a process may not read the memory of "
			"another, so that long messages "
			"are not copied: look at kernel.yama.ptrace_scope, and at the containers' "
			"seccomp profiles and PID namespaces.\n",
			refused);
}

static void print(int nprocs, const struct totals *sum, const uint64_t *high, struct tuple *tuples)
{
	uint64_t direct = counted(sum, "recv_direct");
	uint64_t software = by_software(sum, ""), all = direct + software;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	if (nprocs)
		fprintf(out, "TupleQ: %d process%s, rank 0 on %s\n", nprocs,
			nprocs == 1 ? "" : "es", tq_device_text(mca_pml_tupleq.ep));
	else
		fprintf(out,
			"TupleQ: the job's first process alone, as it used sessions without "
			"MPI_Init, on %s\n",
			tq_device_text(mca_pml_tupleq.ep));
	fprintf(out,
		"The HCA matched %" PRIu64 " of %" PRIu64
		" messages (%.1f %%, and %.1f %% of the bytes), "
		"software matched %" PRIu64 "; %" PRIu64 " promotions, %" PRIu64
		" recalls. The busiest of %" PRIu64 " tuples used lately:\n",
		direct, all, percent(direct, software),
		percent(counted(sum, "recv_direct_bytes"), by_software(sum, "_bytes")), software,
		counted(sum, "promotions"), counted(sum, "recalls"), sum->tuples);
	if (all)
		print_tuples(out, tuples, (nprocs ? nprocs : 1) * TUPLES);
	print_advice(out, sum, all);
	print_within_nodes(out, sum);
	print_counters(out, sum->counter, high);
	fclose(out);
	/* One call, so that other output doesn't get in between. */
	fwrite(text, 1, size, stderr);
	free(text);
}

static bool is_reported;

/* Prints the report of this process. Sessions end on each process for itself, so that nothing can
 * be asked of the others. */
static void report_alone(void)
{
	/* Too large for a small stack. Programs may use sessions again. */
	static uint64_t high[TUPLEQ_COUNTERS];
	static struct tuple best[TUPLES];
	static struct totals mine;

	memset(high, 0, sizeof(high));
	memset(best, 0, sizeof(best));
	mine = (struct totals){0};
	collect(&mine, high, best, 0);
	print(0, &mine, high, best);
}

static void report(void)
{
	/* Too large for a small stack. The hook runs once. */
	static uint64_t high[TUPLEQ_COUNTERS], max[TUPLEQ_COUNTERS];
	static struct totals mine, sum;
	static struct tuple best[TUPLES];
	struct tuple *all = NULL;
	int rank, nprocs;

	/* The hook also runs in a process that hasn't called MPI_Init. */
	if (!mca_pml_tupleq.ep)
		return;
	is_reported = true;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &nprocs);
	collect(&mine, high, best, rank);
	if (!rank)
		all = calloc(nprocs, sizeof(best));
	PMPI_Reduce(&mine, &sum, sizeof(mine) / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM, 0,
		    MPI_COMM_WORLD);
	PMPI_Reduce(high, max, TUPLEQ_COUNTERS, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	PMPI_Gather(best, sizeof(best), MPI_BYTE, all, sizeof(best), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (all)
		print(nprocs, &sum, max, all);
	free(all);
}

static ompi_hook_base_component_t hook = {
	.hookm_version =
		{
			OMPI_HOOK_BASE_VERSION_1_0_0,
			.mca_component_name = "tupleq",
			MCA_BASE_MAKE_VERSION(component, TUPLEQ_MAJOR, TUPLEQ_MINOR,
					      TUPLEQ_RELEASE),
		},
	.hookm_data = {MCA_BASE_METADATA_PARAM_NONE},
	.hookm_mpi_finalize_top = report,
};

int mca_pml_tupleq_report_open(void)
{
	return ompi_hook_base_register_callbacks(&hook);
}

void mca_pml_tupleq_report_close(void)
{
	if (!is_reported && OMPI_PROC_MY_NAME->vpid == 0)
		report_alone();
	is_reported = false;
	ompi_hook_base_deregister_callbacks(&hook);
}
