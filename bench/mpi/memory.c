/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - what a process needs by the number of its peers and tags. Each rank prints a JSON
 * object per step: its process id, so that queues and registered memory can be looked up at the
 * adapter, what is resident, and those of MPI's performance variables that are asked for.
 *
 * All steps are one process's, each with more peers or tags than the last. Nothing else is
 * communicated, as collectives have peers of their own: who looks says when to go on by a signal.
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

/* Messages of one round with all peers, a receive a round ahead. */
struct traffic {
	long n;
	MPI_Request *send, *recv[2];
	char (*send_buf)[BYTES], (*recv_buf)[BYTES];
};

static void *room(long n, size_t size)
{
	void *p = calloc((size_t)n, size);

	if (!p)
		die("no memory for %ld messages", n);
	return p;
}

static void traffic_init(struct traffic *t, long n)
{
	t->n = n;
	t->send = room(n, sizeof(*t->send));
	t->send_buf = room(n, sizeof(*t->send_buf));
	t->recv_buf = room(2 * n, sizeof(*t->recv_buf));
	for (int i = 0; i < 2; i++)
		t->recv[i] = room(n, sizeof(*t->recv[i]));
}

static void traffic_free(struct traffic *t)
{
	free(t->send);
	free(t->recv[0]);
	free(t->recv[1]);
	free(t->send_buf);
	free(t->recv_buf);
}

/* The ranks come in pairs for each of them: a peer's peer is oneself. */
static int peer_of(const struct settings *s, long k, long tags)
{
	return s->rank ^ (int)(k / tags + 1);
}

static void post_round(const struct settings *s, struct traffic *t, long tags, long round)
{
	for (long k = 0; k < t->n; k++)
		MPI_Irecv(t->recv_buf[round % 2 * t->n + k], BYTES, MPI_BYTE, peer_of(s, k, tags),
			  (int)(k % tags), MPI_COMM_WORLD, &t->recv[round % 2][k]);
}

static void send_round(const struct settings *s, struct traffic *t, long tags)
{
	for (long k = 0; k < t->n; k++)
		MPI_Isend(t->send_buf[k], BYTES, MPI_BYTE, peer_of(s, k, tags), (int)(k % tags),
			  MPI_COMM_WORLD, &t->send[k]);
}

static void exchange(const struct settings *s, struct traffic *t, long tags)
{
	post_round(s, t, tags, 0);
	for (long i = 0; i < s->messages; i++) {
		if (i + 1 < s->messages)
			post_round(s, t, tags, i + 1);
		send_round(s, t, tags);
		MPI_Waitall((int)t->n, t->recv[i % 2], MPI_STATUSES_IGNORE);
		MPI_Waitall((int)t->n, t->send, MPI_STATUSES_IGNORE);
	}
}

/* Memory of this process that is there now, in bytes. */
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

/* A variable of the type that counters have; false for others. */
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

static bool asked_for(const struct settings *s, const char *name)
{
	for (int i = 0; i < s->ncounters; i++)
		if (strcmp(s->counter[i], name) == 0)
			return true;
	return false;
}

static void print_counters(const struct settings *s)
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
		/* Some have gone, with their component. */
		if (MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &values,
					NULL, NULL, &bind, &readonly, &continuous, &atomic))
			continue;
		if (!asked_for(s, name) || type != MPI_UNSIGNED_LONG_LONG ||
		    bind != MPI_T_BIND_NO_OBJECT || !read_counter(session, i, &value))
			continue;
		printf("%s\"%s\":%llu", comma, name, value);
		comma = ",";
	}
	MPI_T_pvar_session_free(&session);
}

/* A short line: mpirun hands on long ones in parts, with others' in between. */
static void print(const struct settings *s, long peers, long tags)
{
	printf("{\"test\":\"memory\",\"rank\":%d,\"ranks\":%d,\"pid\":%ld,\"peers\":%ld,"
	       "\"tags\":%ld,\"resident\":%ld,\"counters\":{",
	       s->rank, s->ranks, (long)getpid(), peers, tags, resident());
	print_counters(s);
	printf("}}\n");
	fflush(stdout);
}

/*
 * Meanwhile the library is called now and then: peers may wait for what it has yet to send. Such a
 * message never comes, and to ask oneself for it takes no connection.
 */
static void wait_for_signal(const struct settings *s, const sigset_t *signals)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int found;

	do
		MPI_Iprobe(s->rank, MAX_TAGS, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	while (sigtimedwait(signals, NULL, &pause) < 0);
}

static void step(const struct settings *s, long peers, long tags, const sigset_t *signals)
{
	struct traffic t;

	if (peers >= s->ranks)
		die("--peers: %d ranks have %d", s->ranks, s->ranks - 1);
	traffic_init(&t, peers * tags);
	exchange(s, &t, tags);
	print(s, peers, tags);
	if (s->wait)
		wait_for_signal(s, signals);
	traffic_free(&t);
}

static void parse_names(struct settings *s, char *list)
{
	char *rest, *one;

	for (one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (s->ncounters == MAX_LIST)
			die("--counters wants at most %d names", MAX_LIST);
		s->counter[s->ncounters++] = one;
	}
}

static const struct argp_option options[] = {
	{"peers", 'p', "LIST", 0,
	 "how many peers each rank has, as 0,1,3; 1. The number of ranks is a power of two", 0},
	{"tags", 't', "LIST", 0, "tags that are used with each peer, as 1,16,256; 1", 0},
	{"messages", 'm', "N", 0, "messages of each tag in a step; 16", 0},
	{"counters", 'c', "LIST", 0, "performance variables to show, by name; those that are there",
	 0},
	{"wait", 'w', NULL, 0, "after each step every rank waits for the signal SIGUSR1", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'p':
		s->npeers = parse_numbers("peers", arg, 0, 65535, s->peers, MAX_LIST);
		return 0;
	case 't':
		s->ntags = parse_numbers("tags", arg, 1, MAX_TAGS, s->tags, MAX_LIST);
		return 0;
	case 'm':
		s->messages = parse_number("messages", arg, 1, 1000000);
		return 0;
	case 'c':
		parse_names(s, arg);
		return 0;
	case 'w':
		s->wait = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings s = {.peers = {1}, .npeers = 1, .tags = {1}, .ntags = 1, .messages = 16};
	const struct program program = {
		.doc = "What MPI ranks need for peers and tags.",
		.options = options,
		.parser = parse_option,
	};
	sigset_t signals;
	int provided;

	/* It may come early, and isn't for threads that MPI makes. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
	options_parse(&program, argc, argv, &s);
	if (s.ranks & (s.ranks - 1))
		die("this program wants a power of two of ranks, not %d", s.ranks);
	for (unsigned i = 0; i < s.npeers; i++)
		for (unsigned k = 0; k < s.ntags; k++)
			step(&s, s.peers[i], s.tags[k], &signals);
	MPI_T_finalize();
	MPI_Finalize();
	return 0;
}
