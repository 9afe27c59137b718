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

static bool matches(const struct receive *r, int comm, int src, int tag)
{
	return r->comm == comm && (r->src == MPI_ANY_SOURCE || r->src == src) &&
	       (r->tag == MPI_ANY_TAG || r->tag == tag);
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
		struct message *m = &(*list)[i];
		int size = t_below(&rng, 10);

		*m = (struct message){kind[i] / TAGS, dest, kind[i] % TAGS, i, .taken = -1};
		m->bytes = 4 + (size < 6 ? t_below(&rng, 200) : size < 9 ? t_below(&rng, 9000) : 0);
		if (size == 9)
			m->bytes = 4 + t_below(&rng, BIG - 4);
		do
			m->mode = (enum mode)t_below(&rng, MODES);
		while (mode_ready(m->mode) || m->mode == MODE_SSEND || mode_buffered(m->mode) ||
		       (mode_blocks(m->mode) && m->bytes > SURELY_EAGER));
	}
	free(kind);
	return n;
}

/* Makes all that this rank sends: its lists for each receiver, mixed. */
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

static void send_one(struct message *m)
{
	m->buf = t_alloc((size_t)m->bytes);
	memcpy(m->buf, &m->seq, 4);
	t_fill(m->buf + 4, (size_t)m->bytes - 4,
	       (struct t_msg){t_rank, m->tag, (unsigned int)m->seq});
	m->req = mode_send(m->mode, m->buf, m->bytes, MPI_BYTE, m->dest, m->tag, comms[m->comm]);
}

static void post(struct receive r)
{
	struct receive *p = &receives[nposted++];
	MPI_Status st;
	int flag;

	*p = r;
	p->buf = t_alloc(BIG);
	MPI_Irecv(p->buf, BIG, MPI_BYTE, p->src, p->tag, comms[p->comm], &p->req);
	if (!p->cancel)
		return;
	t_doing("cancelling a receive");
	MPI_Cancel(&p->req);
	MPI_Wait(&p->req, &st);
	MPI_Test_cancelled(&st, &flag);
	p->cancelled = flag;
	if (!flag) {
		p->from = st.MPI_SOURCE;
		t_true(matches(p, p->comm, st.MPI_SOURCE, st.MPI_TAG),
		       "a receive from %d with tag %d took a message from %d with tag %d", p->src,
		       p->tag, st.MPI_SOURCE, st.MPI_TAG);
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
	struct receive *r = &receives[i];
	struct message *m;
	MPI_Status st;

	if (r->cancelled)
		return;
	if (!r->cancel) {
		MPI_Wait(&r->req, &st);
		r->from = st.MPI_SOURCE;
	}
	t_true(r->from >= 0 && r->from < t_size, "a message from rank %d", r->from);
	memcpy(&r->seq, r->buf, 4);
	t_true(r->seq >= 0 && r->seq < n[r->from], "message %d of %d from rank %d", r->seq,
	       n[r->from], r->from);
	m = &from[r->from][r->seq];
	t_true(m->taken < 0, "message %d from rank %d came twice: to receives %d and %d", r->seq,
	       r->from, m->taken, i);
	m->taken = i;
	t_true(matches(r, m->comm, r->from, m->tag),
	       "receive %d (source %d, tag %d) took message %d from %d with tag %d", i, r->src,
	       r->tag, r->seq, r->from, m->tag);
	if (!r->cancel)
		t_status(&st, r->from, m->tag, (size_t)m->bytes);
	t_verify(r->buf + 4, (size_t)m->bytes - 4,
		 (struct t_msg){r->from, m->tag, (unsigned int)m->seq});
}

/* Fails if receive e, posted earlier than the receive that took message i of s, could have taken
 * it. */
static void earlier_receive(int e, int s, const struct message *m)
{
	const struct receive *r = &receives[e];

	if (!r->cancelled && matches(r, m->comm, s, m->tag) && r->from == s && r->seq > m->seq)
		t_fail("message %d from rank %d with tag %d went to receive %d, and the earlier "
		       "receive %d (source %d, tag %d) took the later message %d",
		       m->seq, s, m->tag, m->taken, e, r->src, r->tag, r->seq);
}

static void judge(struct message **from, const int *n)
{
	int s, i, k;

	for (s = 0; s < t_size; s++)
		for (i = 0; i < n[s]; i++) {
			struct message *m = &from[s][i];
			struct receive *r = &receives[m->taken];

			t_true(m->taken >= 0, "message %d from rank %d was lost", i, s);
			for (k = 0; k < m->taken; k++)
				earlier_receive(k, s, m);
			for (k = 0; k < i; k++)
				t_true(!matches(r, from[s][k].comm, s, from[s][k].tag) ||
					       from[s][k].taken < m->taken,
				       "receive %d (source %d, tag %d) took message %d from rank "
				       "%d before message %d with tag %d",
				       m->taken, r->src, r->tag, i, s, k, from[s][k].tag);
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
