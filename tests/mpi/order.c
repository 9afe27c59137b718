/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.c - order [SEED [RECEIVES [PERCENT WILD [PERCENT PROBES]]]]: random traffic between all
 * ranks on two communicators, judged by MPI's matching rules.
 *
 * Every rank has a list of random receives, exact ones and wildcards, some of them cancelled at
 * once. Chance decides whether each is posted early, late or in between. All ranks know all lists.
 * For each (receiver, communicator, tag), a sender has as many messages as the receiver's list has
 * receives that could take one. So each receive of the list gets a message, whichever way they
 * match: as many messages could match it as receives compete for them. Wildcards receive the
 * leftovers at the end. A message begins with its number from this sender to this receiver.
 *
 * No rank waits for anything before all is sent and posted. Only small messages use a blocking
 * send. So the program ends under every correct MPI.
 */
#include "check.h"
#include "mode.h"

/* Open MPI's btl/self has the smallest eager limit: 1024 bytes with the header. */
enum { TAGS = 3, COMMS = 2, BIG = 70000, SURELY_EAGER = 900 };

struct receive {
	int comm, src, tag; /* as the receive asks */
	bool cancel, cancelled;
	int from, seq; /* the message that the receive took */
	unsigned char *buf;
	MPI_Request req;
};

struct message {
	int comm, dest, tag, seq;
	int bytes;
	enum mode mode;
	unsigned char *buf;
	MPI_Request req;
	int taken; /* at the receiver: the number of the receive that took the message, or -1 */
};

static uint64_t seed;
static int nreceives, wild, probes;
static MPI_Comm comms[COMMS];
static struct receive *receives;
static int nposted;
static struct message *sends; /* of this rank, in their order */
static int nsends;

/* Returns the n-th receive in the list of a rank. Every rank can compute all of them. */
static struct receive spec(int rank, int n)
{
	struct t_rng rng = t_rng(seed, (uint64_t)rank, (uint64_t)n);
	struct receive r = {.from = -1};

	r.comm = t_below(&rng, COMMS);
	r.src = t_chance(&rng, wild) ? MPI_ANY_SOURCE : t_below(&rng, t_size);
	r.tag = t_chance(&rng, wild) ? MPI_ANY_TAG : t_below(&rng, TAGS);
	r.cancel = t_chance(&rng, wild / 4);
	return r;
}

static bool matches(const struct receive *receive, int comm, int src, int tag)
{
	return receive->comm == comm && (receive->src == MPI_ANY_SOURCE || receive->src == src) &&
	       (receive->tag == MPI_ANY_TAG || receive->tag == tag);
}

/* Lists the messages from src to dest in their order, with their sizes. Returns how many there
 * are. */
static int schedule(int src, int dest, struct message **list)
{
	struct t_rng rng = t_rng(seed, 1000 + (uint64_t)src, (uint64_t)dest);
	int comm, tag, i, n = 0;
	int *kind = t_alloc(sizeof(*kind) * (size_t)nreceives * COMMS * TAGS);

	for (i = 0; i < nreceives; i++) {
		struct receive r = spec(dest, i);

		for (comm = 0; comm < COMMS; comm++)
			for (tag = 0; tag < TAGS; tag++)
				if (matches(&r, comm, src, tag))
					kind[n++] = comm * TAGS + tag;
	}
	t_shuffle(&rng, kind, n);
	*list = t_alloc(sizeof(**list) * (size_t)n);
	for (i = 0; i < n; i++) {
		struct message *message = &(*list)[i];
		int size = t_below(&rng, 10);

		*message = (struct message){kind[i] / TAGS, dest, kind[i] % TAGS, i, .taken = -1};
		message->bytes = 4 + (size < 6   ? t_below(&rng, 200)
				      : size < 9 ? t_below(&rng, 9000)
						 : 0);
		if (size == 9)
			message->bytes = 4 + t_below(&rng, BIG - 4);
		do
			message->mode = (enum mode)t_below(&rng, MODES);
		while (mode_ready(message->mode) || message->mode == MODE_SSEND ||
		       mode_buffered(message->mode) ||
		       (mode_blocks(message->mode) && message->bytes > SURELY_EAGER));
	}
	free(kind);
	return n;
}

/* Makes the list of all messages that this rank sends: its lists for each receiver, mixed. */
static void make_sends(struct t_rng *rng)
{
	struct message **list = t_alloc(sizeof(*list) * (size_t)t_size);
	int *at = t_alloc(sizeof(*at) * (size_t)t_size);
	int *n = t_alloc(sizeof(*n) * (size_t)t_size);
	int total = 0, d;

	for (d = 0; d < t_size; d++) {
		n[d] = schedule(t_rank, d, &list[d]);
		at[d] = 0;
		total += n[d];
	}
	sends = t_alloc(sizeof(*sends) * (size_t)total);
	while (nsends < total) {
		d = t_below(rng, t_size);
		if (at[d] < n[d])
			sends[nsends++] = list[d][at[d]++];
	}
	for (d = 0; d < t_size; d++)
		free(list[d]);
	free(list);
	free(at);
	free(n);
}

static void send_one(struct message *message)
{
	message->buf = t_alloc((size_t)message->bytes);
	memcpy(message->buf, &message->seq, 4);
	t_fill(message->buf + 4, (size_t)message->bytes - 4,
	       (struct t_msg){t_rank, message->tag, (unsigned int)message->seq});
	message->req = mode_send(message->mode, message->buf, message->bytes, MPI_BYTE,
				 message->dest, message->tag, comms[message->comm]);
}

static void post(struct receive r)
{
	struct receive *receive = &receives[nposted++];
	MPI_Status st;
	int flag;

	*receive = r;
	receive->buf = t_alloc(BIG);
	MPI_Irecv(receive->buf, BIG, MPI_BYTE, receive->src, receive->tag, comms[receive->comm],
		  &receive->req);
	if (!receive->cancel)
		return;
	t_doing("cancelling a receive");
	MPI_Cancel(&receive->req);
	MPI_Wait(&receive->req, &st);
	MPI_Test_cancelled(&st, &flag);
	receive->cancelled = flag;
	if (!flag) {
		receive->from = st.MPI_SOURCE;
		t_true(matches(receive, receive->comm, st.MPI_SOURCE, st.MPI_TAG),
		       "a receive from %d with tag %d took a message from %d with tag %d",
		       receive->src, receive->tag, st.MPI_SOURCE, st.MPI_TAG);
	}
	t_doing("sending and posting");
}

static void look(struct t_rng *rng)
{
	struct receive r = {.comm = t_below(rng, COMMS)};
	MPI_Status st;
	int flag, count;

	r.src = t_chance(rng, 30) ? MPI_ANY_SOURCE : t_below(rng, t_size);
	r.tag = t_chance(rng, 30) ? MPI_ANY_TAG : t_below(rng, TAGS);
	MPI_Iprobe(r.src, r.tag, comms[r.comm], &flag, &st);
	if (!flag)
		return;
	MPI_Get_count(&st, MPI_BYTE, &count);
	t_true(matches(&r, r.comm, st.MPI_SOURCE, st.MPI_TAG) && count >= 4 && count <= BIG,
	       "a probe for source %d, tag %d shows source %d, tag %d, %d bytes", r.src, r.tag,
	       st.MPI_SOURCE, st.MPI_TAG, count);
}

/* Sends and receives in a random order, with a pace that changes every 64 steps. */
static void traffic(struct t_rng *rng)
{
	int sent = 0, pace = 50, step;

	t_doing("sending and posting");
	for (step = 0; sent < nsends || nposted < nreceives; step++) {
		if (step % 64 == 0) {
			pace = t_chance(rng, 30) ? 5 : t_chance(rng, 50) ? 95 : 50;
			if (t_chance(rng, 10))
				t_away(1 + t_below(rng, 3));
		}
		if (t_chance(rng, probes))
			look(rng);
		if (nposted < nreceives && (sent == nsends || t_chance(rng, pace)))
			post(spec(t_rank, nposted));
		else if (sent < nsends)
			send_one(&sends[sent++]);
	}
}

static int sent_to_me(int comm, struct message **from, const int *n)
{
	int s, i, total = 0;

	for (s = 0; s < t_size; s++)
		for (i = 0; i < n[s]; i++)
			total += from[s][i].comm == comm;
	return total;
}

/* Posts wildcards for the messages that the list's receives leave over. */
static void post_rest(struct message **from, const int *n)
{
	int comm, i, left;

	for (comm = 0; comm < COMMS; comm++) {
		left = sent_to_me(comm, from, n);
		for (i = 0; i < nreceives; i++)
			left -= receives[i].comm == comm && !receives[i].cancelled;
		while (left-- > 0)
			post((struct receive){comm, MPI_ANY_SOURCE, MPI_ANY_TAG, .from = -1});
	}
}

static void finish_receive(int i, struct message **from, const int *n)
{
	struct receive *receive = &receives[i];
	struct message *message;
	MPI_Status st;

	if (receive->cancelled)
		return;
	if (!receive->cancel) {
		MPI_Wait(&receive->req, &st);
		receive->from = st.MPI_SOURCE;
	}
	t_true(receive->from >= 0 && receive->from < t_size, "a message from rank %d",
	       receive->from);
	memcpy(&receive->seq, receive->buf, 4);
	t_true(receive->seq >= 0 && receive->seq < n[receive->from],
	       "message %d of %d from rank %d", receive->seq, n[receive->from], receive->from);
	message = &from[receive->from][receive->seq];
	t_true(message->taken < 0, "message %d from rank %d came twice: to receives %d and %d",
	       receive->seq, receive->from, message->taken, i);
	message->taken = i;
	t_true(matches(receive, message->comm, receive->from, message->tag),
	       "receive %d (source %d, tag %d) took message %d from %d with tag %d", i,
	       receive->src, receive->tag, receive->seq, receive->from, message->tag);
	if (!receive->cancel)
		t_status(&st, receive->from, message->tag, (size_t)message->bytes);
	t_verify(receive->buf + 4, (size_t)message->bytes - 4,
		 (struct t_msg){receive->from, message->tag, (unsigned int)message->seq});
}

/* Fails if receive e, posted earlier than the receive that took the message of rank s, could have
 * taken it. */
static void earlier_receive(int e, int s, const struct message *message)
{
	const struct receive *receive = &receives[e];

	if (!receive->cancelled && matches(receive, message->comm, s, message->tag) &&
	    receive->from == s && receive->seq > message->seq)
		t_fail("message %d from rank %d with tag %d went to receive %d, and the earlier "
		       "receive %d (source %d, tag %d) took the later message %d",
		       message->seq, s, message->tag, message->taken, e, receive->src, receive->tag,
		       receive->seq);
}

static void judge(struct message **from, const int *n)
{
	int s, i, k;

	for (s = 0; s < t_size; s++)
		for (i = 0; i < n[s]; i++) {
			struct message *message = &from[s][i];
			struct receive *receive;

			t_true(message->taken >= 0, "message %d from rank %d was lost", i, s);
			receive = &receives[message->taken];
			for (k = 0; k < message->taken; k++)
				earlier_receive(k, s, message);
			for (k = 0; k < i; k++)
				t_true(!matches(receive, from[s][k].comm, s, from[s][k].tag) ||
					       from[s][k].taken < message->taken,
				       "receive %d (source %d, tag %d) took message %d from rank "
				       "%d before message %d with tag %d",
				       message->taken, receive->src, receive->tag, i, s, k,
				       from[s][k].tag);
		}
}

int main(int argc, char **argv)
{
	struct message **from;
	struct t_rng rng;
	int *n, room, i;

	t_init(&argc, &argv, 1);
	seed = (uint64_t)t_arg(argc, argv, 1, 1);
	nreceives = (int)t_arg(argc, argv, 2, 400);
	wild = (int)t_arg(argc, argv, 3, 10);
	probes = (int)t_arg(argc, argv, 4, 5);
	rng = t_rng(seed, 5000, (uint64_t)t_rank);
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);

	t_begin("order seed %llu, %d receives, %d%% wild, %d%% probes", (unsigned long long)seed,
		nreceives, wild, probes);
	make_sends(&rng);
	from = t_alloc(sizeof(*from) * (size_t)t_size);
	n = t_alloc(sizeof(*n) * (size_t)t_size);
	room = nreceives;
	for (i = 0; i < t_size; i++) {
		n[i] = schedule(i, t_rank, &from[i]);
		room += n[i];
	}
	receives = t_alloc(sizeof(*receives) * (size_t)room);
	traffic(&rng);
	post_rest(from, n);
	t_doing("waiting for receives");
	for (i = 0; i < nposted; i++)
		finish_receive(i, from, n);
	judge(from, n);
	t_doing("waiting for sends");
	for (i = 0; i < nsends; i++) {
		mode_wait(&sends[i].req);
		free(sends[i].buf);
	}
	t_end();

	for (i = 0; i < nposted; i++)
		free(receives[i].buf);
	for (i = 0; i < t_size; i++)
		free(from[i]);
	free(receives);
	free(sends);
	free(from);
	free(n);
	MPI_Comm_free(&comms[1]);
	return t_finish();
}
