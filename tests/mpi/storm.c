/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storm.c - storm [SEED [MESSAGES [LIMIT]]]: a storm of unexpected messages of up to 1 MiB. The
 * receiver may keep only LIMIT MiB of them (pml_tupleq_unexpected_limit). In pairs: even ranks
 * send, odd ranks receive.
 */
#include "check.h"

enum { TAGS = 50, AT_ONCE = 16, MIB = 1 << 20, RECORD = 512 };

static struct t_rng rng; /* both ranks of a pair have the same */
static int peer, n;
static long long limit;
static bool sender;
static unsigned char *data; /* messages are pieces of this */
static const size_t data_len = (2 << 20);

struct sent {
	int bytes, tag;
	size_t at;
	MPI_Request req;
};

static void choose(struct sent *sent)
{
	int k = t_below(&rng, 10000);

	sent->bytes = 1 + (k < 9000   ? t_below(&rng, 256)
			   : k < 9990 ? t_below(&rng, 4000)
			   : k < 9998 ? t_below(&rng, 100000)
				      : t_below(&rng, MIB));
	sent->tag = t_below(&rng, TAGS);
	sent->at = (size_t)t_below(&rng, (int)(data_len - (size_t)sent->bytes));
}

/* Checks the memory of the receiver: eager data up to the limit and as much as credits allow after
 * that, and a record of each other message. */
static void check_memory(long long before)
{
	long long high = t_counter("pml_tupleq_unexpected_bytes_high");
	long long grown = t_resident() - before, most = limit + 8 * MIB + (long long)n * RECORD;

	if (high < 0)
		return; /* not pml/tupleq */
	t_true(high <= limit + 2 * MIB, "%lld bytes of unexpected data were kept, not %lld", high,
	       limit);
	t_true(grown <= most, "%lld bytes more are in use, not %lld", grown, most);
}

/* Receives the next messages with this tag all at once: on a busy machine each wait may cost a time
 * slice. */
static void receive(struct sent *all, const int *which, int count)
{
	unsigned char *in[AT_ONCE];
	MPI_Request req[AT_ONCE];
	MPI_Status st;

	for (int k = 0; k < count; k++) {
		const struct sent *sent = &all[which[k]];

		in[k] = t_alloc((size_t)sent->bytes);
		MPI_Irecv(in[k], sent->bytes, MPI_BYTE, which[k] % 1000 ? peer : MPI_ANY_SOURCE,
			  sent->tag, MPI_COMM_WORLD, &req[k]);
	}
	for (int k = 0; k < count; k++) {
		const struct sent *sent = &all[which[k]];

		MPI_Wait(&req[k], &st);
		t_status(&st, peer, sent->tag, (size_t)sent->bytes);
		t_true(!memcmp(in[k], data + sent->at, (size_t)sent->bytes),
		       "message %d of %d bytes is another", which[k], sent->bytes);
		free(in[k]);
	}
}

static void receive_all(struct sent *all)
{
	int which[AT_ONCE], count = 0;

	for (int tag = TAGS - 1; tag >= 0; tag--) {
		for (int i = 0; i < n; i++) {
			if (all[i].tag == tag)
				which[count++] = i;
			if (count == AT_ONCE || (i == n - 1 && count)) {
				receive(all, which, count);
				count = 0;
			}
		}
	}
}

static void storm(struct sent *all)
{
	long long before = t_resident();
	int i;

	t_begin("storm: %d unexpected messages of 1 to %d bytes", n, MIB);
	for (i = 0; i < n; i++)
		choose(&all[i]);
	t_doing("sending");
	for (i = 0; i < n && sender; i++)
		MPI_Isend(data + all[i].at, all[i].bytes, MPI_BYTE, peer, all[i].tag,
			  MPI_COMM_WORLD, &all[i].req);
	t_doing("the barrier after the storm");
	MPI_Barrier(MPI_COMM_WORLD);
	if (!sender)
		check_memory(before);
	t_end();
	t_begin("storm: they are received");
	if (!sender)
		receive_all(all);
	for (i = 0; i < n && sender; i++)
		MPI_Wait(&all[i].req, MPI_STATUS_IGNORE);
	t_end();
}

int main(int argc, char **argv)
{
	struct sent *all;

	t_init(&argc, &argv, 2);
	peer = t_rank ^ 1;
	sender = t_rank % 2 == 0;
	t_true(t_size % 2 == 0, "it needs pairs");
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), (uint64_t)t_rank / 2, 0);
	n = (int)t_arg(argc, argv, 2, 100000);
	limit = t_arg(argc, argv, 3, 16) * MIB;
	all = t_alloc(sizeof(*all) * (size_t)n);
	memset(all, 0, sizeof(*all) * (size_t)n);
	data = t_alloc(data_len);
	t_fill(data, data_len, (struct t_msg){t_rank / 2, 0, 0});
	storm(all);
	free(all);
	free(data);
	return t_finish();
}
