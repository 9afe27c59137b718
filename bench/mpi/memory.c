/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - the queues and the memory of a process, by the number of its peers and tags. Each rank
 * prints a JSON object per step: its process id, by which the adapter's queues and registered
 * memory are found, its resident memory, and the MPI performance variables that are asked for.
 *
 * One process takes all steps, each with more peers or tags than the last. No collective is called,
 * because collectives have peers of their own. A signal of the observer starts the next step.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "pair.h"

#define MAX_LIST 32
#define MAX_TAGS 32768
#define NAME     128
#define BYTES    8

struct settings {
	int rank, ranks;
	long peers[MAX_LIST], tags[MAX_LIST];
	unsigned npeers, ntags;
	long messages;
	char *counter[MAX_LIST];
	int ncounters;
	bool wait;
};

/* The messages of a round with all peers; receives are posted a round ahead. */
struct traffic {
	long n;
	MPI_Request *send, *recv[2];
	char (*send_buf)[BYTES], (*recv_buf)[BYTES];
};

static void *room(long n, size_t size)
{
	void *memory = calloc((size_t)n, size);

	if (!memory)
		die("no memory for %ld messages", n);
	return memory;
}

static void traffic_init(struct traffic *traffic, long n)
{
	traffic->n = n;
	traffic->send = room(n, sizeof(*traffic->send));
	traffic->send_buf = room(n, sizeof(*traffic->send_buf));
	traffic->recv_buf = room(2 * n, sizeof(*traffic->recv_buf));
	for (int i = 0; i < 2; i++)
		traffic->recv[i] = room(n, sizeof(*traffic->recv[i]));
}

static void traffic_free(struct traffic *traffic)
{
	free(traffic->send);
	free(traffic->recv[0]);
	free(traffic->recv[1]);
	free(traffic->send_buf);
	free(traffic->recv_buf);
}

/* Returns the peer of message k. Ranks are each other's peers. */
static int peer_of(const struct settings *settings, long k, long tags)
{
	return settings->rank ^ (int)(k / tags + 1);
}

static void post_round(const struct settings *settings, struct traffic *traffic, long tags,
		       long round)
{
	for (long k = 0; k < traffic->n; k++)
		MPI_Irecv(traffic->recv_buf[round % 2 * traffic->n + k], BYTES, MPI_BYTE,
			  peer_of(settings, k, tags), (int)(k % tags), MPI_COMM_WORLD,
			  &traffic->recv[round % 2][k]);
}

static void send_round(const struct settings *settings, struct traffic *traffic, long tags)
{
	for (long k = 0; k < traffic->n; k++)
		MPI_Isend(traffic->send_buf[k], BYTES, MPI_BYTE, peer_of(settings, k, tags),
			  (int)(k % tags), MPI_COMM_WORLD, &traffic->send[k]);
}

static void exchange(const struct settings *settings, struct traffic *traffic, long tags)
{
	post_round(settings, traffic, tags, 0);
	for (long i = 0; i < settings->messages; i++) {
		if (i + 1 < settings->messages)
			post_round(settings, traffic, tags, i + 1);
		send_round(settings, traffic, tags);
		MPI_Waitall((int)traffic->n, traffic->recv[i % 2], MPI_STATUSES_IGNORE);
		MPI_Waitall((int)traffic->n, traffic->send, MPI_STATUSES_IGNORE);
	}
}

/* Returns the resident memory of this process in bytes, or 0 if that is unknown. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %ld", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Reads a variable of the type that counters have. Returns false for other types. */
static bool read_counter(MPI_T_pvar_session session, int i, unsigned long long *value)
{
	MPI_T_pvar_handle handle;
	int count;

	if (MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count))
		return false;
	if (count == 1)
		MPI_T_pvar_read(session, handle, value);
	MPI_T_pvar_handle_free(session, &handle);
	return count == 1;
}

static bool asked_for(const struct settings *settings, const char *name)
{
	for (int i = 0; i < settings->ncounters; i++)
		if (strcmp(settings->counter[i], name) == 0)
			return true;
	return false;
}

static void print_counters(const struct settings *settings)
{
	int n = 0, verbosity, class, bind, readonly, continuous, atomic, name_len;
	unsigned long long value = 0;
	const char *comma = "";
	MPI_T_pvar_session session;
	MPI_T_enum values;
	MPI_Datatype type;
	char name[NAME];

	MPI_T_pvar_get_num(&n);
	MPI_T_pvar_session_create(&session);
	for (int i = 0; i < n; i++) {
		name_len = sizeof(name);
		/* A variable disappears with its component. */
		if (MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &values,
					NULL, NULL, &bind, &readonly, &continuous, &atomic))
			continue;
		if (!asked_for(settings, name) || type != MPI_UNSIGNED_LONG_LONG ||
		    bind != MPI_T_BIND_NO_OBJECT || !read_counter(session, i, &value))
			continue;
		printf("%s\"%s\":%llu", comma, name, value);
		comma = ",";
	}
	MPI_T_pvar_session_free(&session);
}

/* Prints a short line, because mpirun splits long lines, and mixes them with those of other ranks.
 */
static void print(const struct settings *settings, long peers, long tags)
{
	printf("{\"test\":\"memory\",\"rank\":%d,\"ranks\":%d,\"pid\":%ld,\"peers\":%ld,"
	       "\"tags\":%ld,\"resident\":%ld,\"counters\":{",
	       settings->rank, settings->ranks, (long)getpid(), peers, tags, resident());
	print_counters(settings);
	printf("}}\n");
	fflush(stdout);
}

/*
 * Waits for a signal, and calls the library now and then, because peers may wait for messages that
 * the library still has to send. The message that is probed for never comes, and a probe of this
 * rank itself opens no connection.
 */
static void wait_for_signal(const struct settings *settings, const sigset_t *signals)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int found;

	do
		MPI_Iprobe(settings->rank, MAX_TAGS, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	while (sigtimedwait(signals, NULL, &pause) < 0);
}

static void step(const struct settings *settings, long peers, long tags, const sigset_t *signals)
{
	struct traffic traffic;

	if (peers >= settings->ranks)
		die("--peers: %d ranks have %d", settings->ranks, settings->ranks - 1);
	traffic_init(&traffic, peers * tags);
	exchange(settings, &traffic, tags);
	print(settings, peers, tags);
	if (settings->wait)
		wait_for_signal(settings, signals);
	traffic_free(&traffic);
}

static void parse_names(struct settings *settings, char *list)
{
	char *rest, *one;

	for (one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (settings->ncounters == MAX_LIST)
			die("--counters wants at most %d names", MAX_LIST);
		settings->counter[settings->ncounters++] = one;
	}
}

static const struct argp_option options[] = {
	{"peers", 'p', "LIST", 0,
	 "numbers of peers of each rank, as 0,1,3; 1. The number of ranks is a power of two", 0},
	{"tags", 't', "LIST", 0, "numbers of tags that are used with each peer, as 1,16,256; 1", 0},
	{"messages", 'm', "N", 0, "messages of each tag in a step; 16", 0},
	{"counters", 'c', "LIST", 0, "names of performance variables to show, if they are there",
	 0},
	{"wait", 'w', NULL, 0, "after each step every rank waits for the signal SIGUSR1", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'p':
		settings->npeers = parse_numbers("peers", arg, 0, 65535, settings->peers, MAX_LIST);
		return 0;
	case 't':
		settings->ntags = parse_numbers("tags", arg, 1, MAX_TAGS, settings->tags, MAX_LIST);
		return 0;
	case 'm':
		settings->messages = parse_number("messages", arg, 1, 1000000);
		return 0;
	case 'c':
		parse_names(settings, arg);
		return 0;
	case 'w':
		settings->wait = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.peers = {1}, .npeers = 1, .tags = {1}, .ntags = 1, .messages = 16};
	const struct program program = {
		.doc = "The queues and memory of MPI ranks, by peers and by tags.",
		.options = options,
		.parser = parse_option,
	};
	sigset_t signals;
	int provided;

	/* Blocked before MPI_Init, because the signal may come early, and threads of MPI are not to
	 * get it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &settings.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &settings.ranks);
	options_parse(&program, argc, argv, &settings);
	if (settings.ranks & (settings.ranks - 1))
		die("this program wants a power of two of ranks, not %d", settings.ranks);
	for (unsigned i = 0; i < settings.npeers; i++)
		for (unsigned k = 0; k < settings.ntags; k++)
			step(&settings, settings.peers[i], settings.tags[k], &signals);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
