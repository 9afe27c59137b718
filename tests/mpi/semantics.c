/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * semantics.c - semantics [room]: MPI's rules for single operations: cancelled sends, receives that
 * are freed while active, one buffer in many sends, buffered mode to the last byte, messages longer
 * than their receives in every way they may come, synchronous sends to the process itself. Two
 * ranks or more. room: only room_again().
 */
#include "check.h"

enum { TAG = 11, BUSY = 12, N = 8, MAX = 300000, WARM = 8 };

static unsigned char *out, *in[N], *want;
static unsigned int seq;
static const int sizes[] = {0, 1, 200, 4096, 4097, 20000, MAX};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Sends messages whose receives are in time, so that the tag gets its queue. */
static void warm_up(int tag, MPI_Comm comm)
{
	MPI_Request req;
	int i;

	for (i = 0; i < WARM; i++) {
		MPI_Irecv(in[0], MAX, MPI_BYTE, t_left, tag, comm, &req);
		MPI_Barrier(comm);
		MPI_Send(out, 8, MPI_BYTE, t_right, tag, comm);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

static struct t_msg from(int rank, int i)
{
	return (struct t_msg){rank, TAG, seq + (unsigned int)i};
}

/* ---- cancelling and freeing ---- */

/* Checks that a cancelled send ends, and that its status says whether the message is delivered. */
static void cancelled_sends(void)
{
	int i, n, gone, came;
	MPI_Request req[2];
	MPI_Status st[2];

	t_begin("semantics: sends that are cancelled");
	for (i = 0; i < 2 * SIZES; i++, seq++) {
		n = sizes[i % SIZES];
		if (i % SIZES == 0)
			warm_up(TAG, MPI_COMM_WORLD);
		t_fill(out, (size_t)n, from(t_rank, 0));
		if (i < SIZES)
			MPI_Isend(out, n, MPI_BYTE, t_right, TAG, MPI_COMM_WORLD, &req[0]);
		else
			MPI_Issend(out, n, MPI_BYTE, t_right, TAG, MPI_COMM_WORLD, &req[0]);
		MPI_Cancel(&req[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Irecv(in[0], MAX, MPI_BYTE, t_left, TAG, MPI_COMM_WORLD, &req[1]);
		MPI_Wait(&req[0], &st[0]);
		MPI_Test_cancelled(&st[0], &gone);
		MPI_Sendrecv(&gone, 1, MPI_INT, t_right, 1, &came, 1, MPI_INT, t_left, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (came)
			MPI_Cancel(&req[1]);
		MPI_Wait(&req[1], &st[1]);
		MPI_Test_cancelled(&st[1], &gone);
		t_eq(gone, came);
		if (!came) {
			t_status(&st[1], t_left, TAG, (size_t)n);
			t_verify(in[0], (size_t)n, from(t_left, 0));
		}
	}
	t_end();
}

/* Frees active receives. Their buffers are filled nevertheless, and no other call reports it. */
static void freed_receives(void)
{
	int i, n, flag;
	MPI_Request req;

	t_begin("semantics: receives freed while active");
	for (i = 0; i < 4 * SIZES; i++, seq++) {
		n = sizes[i % SIZES];
		if (i % SIZES == 0)
			warm_up(TAG, MPI_COMM_WORLD);
		t_fill(out, (size_t)n, from(t_rank, 0));
		t_fill(in[1], (size_t)n, from(t_left, 0));
		memset(in[0], 0xee, (size_t)n);
		MPI_Irecv(in[0], n, MPI_BYTE, i % 2 ? t_left : MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
			  &req);
		MPI_Request_free(&req);
		t_eq(req == MPI_REQUEST_NULL, true);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(out, n, MPI_BYTE, t_right, TAG, MPI_COMM_WORLD);
		t_doing("waiting for data that a freed receive gets");
		while (memcmp(in[0], in[1], (size_t)n))
			MPI_Iprobe(MPI_ANY_SOURCE, BUSY, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	t_end();
}

/* ---- buffers ---- */

/* Uses memory in several sends at a time, in whole or in part. */
static void overlapping_sends(void)
{
	int i, n, step, round;
	MPI_Request req[2 * N];
	MPI_Status st[2 * N];

	t_begin("semantics: one buffer in many sends");
	for (i = 0; i < N; i++)
		warm_up(TAG + i, MPI_COMM_WORLD);
	for (round = 0; round < 4 * (SIZES - 1); round++, seq++) {
		n = sizes[1 + round % (SIZES - 1)];
		step = n / N;
		t_fill(out, (size_t)n, from(t_rank, 0));
		t_fill(want, (size_t)n, from(t_left, 0));
		if (round % 2)
			MPI_Barrier(MPI_COMM_WORLD);
		for (i = 0; i < N; i++)
			MPI_Isend(out + i * step, n - i * step, MPI_BYTE, t_right, TAG + i,
				  MPI_COMM_WORLD, &req[i]);
		if (round % 4 / 2)
			MPI_Barrier(MPI_COMM_WORLD);
		for (i = 0; i < N; i++)
			MPI_Irecv(in[i], n, MPI_BYTE, t_left, TAG + i, MPI_COMM_WORLD, &req[N + i]);
		MPI_Waitall(2 * N, req, st);
		for (i = 0; i < N; i++) {
			t_status(&st[N + i], t_left, TAG + i, (size_t)(n - i * step));
			if (memcmp(in[i], want + i * step, (size_t)(n - i * step)))
				t_fail("message %d of %d bytes is wrong", i, n - i * step);
		}
	}
	t_end();
}

/* Returns the length of a piece if n bytes are in `pieces` pieces; at least 1. */
static int piece(int n, int pieces)
{
	return pieces && n ? (n + pieces - 1) / pieces : 1;
}

/* Makes a type of n bytes in pieces, with a hole of the same length behind each. */
static MPI_Datatype holes(int n, int pieces)
{
	int p = piece(n, pieces), *length = t_alloc(sizeof(int) * (size_t)(n / p + 1)), i;
	int *at = t_alloc(sizeof(int) * (size_t)(n / p + 1));
	MPI_Datatype type;

	for (i = 0; i * p < n; i++) {
		length[i] = n - i * p < p ? n - i * p : p;
		at[i] = 2 * i * p;
	}
	MPI_Type_indexed(i, length, at, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	free(length);
	free(at);
	return type;
}

/*
 * Fills the attached buffer with K messages; one more is refused. Their receives are posted while
 * the sender waits in MPI_Buffer_detach.
 */
static void buffered_sends(void)
{
	enum { K = 5 };
	int size, i, n, rc, class, detached, round;
	unsigned char *attached;
	MPI_Datatype type = MPI_BYTE;
	MPI_Request req[K];
	MPI_Status st[K];
	MPI_Comm refused;
	void *at;

	t_begin("semantics: buffered sends until the buffer is full");
	MPI_Comm_dup(MPI_COMM_WORLD, &refused);
	MPI_Comm_set_errhandler(refused, MPI_ERRORS_RETURN);
	for (round = 0; round < 2 * SIZES; round++, seq += K) {
		n = sizes[round % SIZES];
		if (round >= SIZES)
			type = holes(n, n);
		if (round % SIZES == 0)
			warm_up(TAG, MPI_COMM_WORLD);
		MPI_Pack_size(round < SIZES ? n : 1, type, MPI_COMM_WORLD, &size);
		size = K * (size + MPI_BSEND_OVERHEAD);
		attached = t_alloc((size_t)size);
		MPI_Buffer_attach(attached, size);
		for (i = 0; i < K; i++) {
			t_fill(out, 2 * (size_t)n, from(t_rank, i));
			rc = MPI_Bsend(out, round < SIZES ? n : 1, type, t_right, TAG,
				       MPI_COMM_WORLD);
			t_eq(rc, MPI_SUCCESS);
		}
		/* Delivered messages make room again. This message is larger than the whole buffer,
		 * and too large to go without it. Some libraries miscount the room when they refuse
		 * it. */
		rc = MPI_Bsend(out, size + MAX, MPI_BYTE, t_right, TAG, refused);
		MPI_Error_class(rc, &class);
		t_true(class == MPI_ERR_BUFFER || class == MPI_ERR_OTHER, "class %d", class);
		MPI_Barrier(MPI_COMM_WORLD);
		for (i = 0; i < K; i++)
			MPI_Irecv(in[i], MAX, MPI_BYTE, i % 2 ? t_left : MPI_ANY_SOURCE, TAG,
				  MPI_COMM_WORLD, &req[i]);
		MPI_Buffer_detach(&at, &detached);
		t_eq(at == attached, true);
		t_eq(detached, size);
		memset(attached, 0xee, (size_t)size);
		free(attached);
		MPI_Waitall(K, req, st);
		for (i = 0; i < K; i++) {
			t_status(&st[i], t_left, TAG, (size_t)n);
			t_fill(want, 2 * (size_t)n, from(t_left, i));
			for (int k = 0; k < n; k++)
				t_true(in[i][k] == want[round < SIZES ? k : 2 * k],
				       "message %d: byte %d of %d is wrong", i, k, n);
		}
		if (round >= SIZES)
			MPI_Type_free(&type);
	}
	MPI_Comm_free(&refused);
	t_end();
}

/* Checks that a received message makes room in the buffer, although its sender made no call since.
 */
static void room_again(void)
{
	const char *pml = getenv("OMPI_MCA_pml");
	enum { K = 20 };
	MPI_Win win;
	int *received, i, size;
	MPI_Aint bytes;
	void *attached;

	if (!pml || strcmp(pml, "tupleq")) {
		t_skip("room", "only pml/tupleq is known to look for it");
		return;
	}
	t_begin("semantics: room for a buffered send when the one before was received");
	MPI_Win_allocate_shared(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &received, &win);
	MPI_Win_shared_query(win, 0, &bytes, &i, &received);
	if (t_rank == 0)
		__atomic_store_n(received, 0, __ATOMIC_RELEASE);
	attached = t_alloc(MAX + MPI_BSEND_OVERHEAD);
	MPI_Buffer_attach(attached, MAX + MPI_BSEND_OVERHEAD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < K && t_rank < 2; i++) {
		if (t_rank) {
			MPI_Recv(in[0], MAX, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			__atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
			continue;
		}
		MPI_Bsend(out, MAX, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
		while (__atomic_load_n(received, __ATOMIC_ACQUIRE) <= i)
			t_away(1);
	}
	MPI_Buffer_detach(&attached, &size);
	MPI_Win_free(&win);
	free(attached);
	t_end();
}

/* ---- truncation ---- */

enum way {
	EARLY,
	LATE,
	ANY_EARLY,
	ANY_LATE,
	MATCHED,
	PERSISTENT,
	HOLES_EARLY,
	HOLES_LATE,
	PIECES_EARLY,
	PIECES_LATE,
	WAYS
};
static const char *const way_names[] = {
	[EARLY] = "in time",
	[LATE] = "late",
	[ANY_EARLY] = "by a wildcard in time",
	[ANY_LATE] = "by a wildcard late",
	[MATCHED] = "by a matched probe",
	[PERSISTENT] = "by a persistent request",
	[HOLES_EARLY] = "with holes in time",
	[HOLES_LATE] = "with holes late",
	[PIECES_EARLY] = "to four pieces in time",
	[PIECES_LATE] = "to four pieces late",
};

/* Returns how many pieces the receive's memory has; 0: no holes. */
static int pieces_of(enum way way, int room)
{
	if (way == PIECES_EARLY || way == PIECES_LATE)
		return 4;
	return way == HOLES_EARLY || way == HOLES_LATE ? room : 0;
}

/* Receives `sent` bytes into `room` bytes by `way`, which also says whether the message is sent
 * before or after the receive starts. Returns the error class. */
static int receive(enum way way, MPI_Comm comm, int sent, int room, MPI_Status *st)
{
	bool early = way == EARLY || way == ANY_EARLY || way == PERSISTENT || way == HOLES_EARLY ||
		     way == PIECES_EARLY;
	bool any = way == ANY_EARLY || way == ANY_LATE;
	MPI_Datatype type = pieces_of(way, room) ? holes(room, pieces_of(way, room)) : MPI_BYTE;
	int count = type == MPI_BYTE ? room : 1, rc, class;
	MPI_Request req[2];
	MPI_Message msg;

	if (!early) {
		MPI_Isend(out, sent, MPI_BYTE, t_right, TAG, comm, &req[1]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (way == MATCHED) {
		MPI_Mprobe(t_left, TAG, comm, &msg, st);
		t_status(st, t_left, TAG, (size_t)sent);
		MPI_Imrecv(in[0], count, type, &msg, &req[0]);
	} else if (way == PERSISTENT) {
		MPI_Recv_init(in[0], count, type, t_left, TAG, comm, &req[0]);
		MPI_Start(&req[0]);
	} else {
		MPI_Irecv(in[0], count, type, any ? MPI_ANY_SOURCE : t_left, TAG, comm, &req[0]);
	}
	if (early) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Isend(out, sent, MPI_BYTE, t_right, TAG, comm, &req[1]);
	}
	rc = MPI_Wait(&req[0], st);
	t_eq(MPI_Wait(&req[1], MPI_STATUS_IGNORE), MPI_SUCCESS);
	/* Open MPI has freed the request if there was an error. */
	if (req[0] != MPI_REQUEST_NULL)
		MPI_Request_free(&req[0]);
	if (type != MPI_BYTE)
		MPI_Type_free(&type);
	MPI_Error_class(rc, &class);
	return class;
}

/*
 * Receives messages by `way`: one that is too long, one that fits, one too long again. Meanwhile an
 * unmatched message waits on another tag, so no connection may be left for tuple queues.
 */
static void receive_truncated(enum way way, MPI_Comm comm, int sent, int room)
{
	int pieces = pieces_of(way, room), p = piece(room, pieces);
	MPI_Request busy;
	MPI_Status st;
	int i, class;

	MPI_Isend(out, 1, MPI_BYTE, t_right, BUSY, comm, &busy);
	for (i = 0; i < 3; i++, seq++) {
		int n = i % 2 ? room : sent; /* the second message fits */

		memset(in[0], 0xee, MAX);
		t_fill(out, (size_t)n, from(t_rank, 0));
		class = receive(way, comm, n, room, &st);
		t_eq(class, n > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
		t_eq(st.MPI_SOURCE, t_left);
		t_eq(st.MPI_TAG, TAG);
		if (n <= room && !pieces)
			t_verify(in[0], (size_t)n, from(t_left, 0));
		t_untouched(in[0] + (pieces ? 2 * room + p : room), 1000, 0xee);
		for (int k = 0; pieces && k < 2 * room; k++)
			t_true(k % (2 * p) < p || in[0][k] == 0xee, "the hole at %d was written",
			       k);
	}
	MPI_Recv(in[0], 1, MPI_BYTE, t_left, BUSY, comm, MPI_STATUS_IGNORE);
	MPI_Wait(&busy, MPI_STATUS_IGNORE);
}

/* Checks that a synchronous send to the process itself is complete when its receive is. */
static void synchronous_to_itself(void)
{
	MPI_Request send, receive;
	MPI_Status st;
	int flag, round, i, tag;

	t_begin("semantics: synchronous sends to the process itself end with their receives");
	for (round = 0; round < 100; round++) {
		for (i = 0; i < SIZES; i++) {
			tag = round % 2 ? i : 9;
			t_fill(want, (size_t)sizes[i],
			       (struct t_msg){t_rank, tag, (unsigned)round});
			if (round % 3 == 0)
				MPI_Irecv(in[0], MAX, MPI_BYTE, t_rank, tag, MPI_COMM_WORLD,
					  &receive);
			MPI_Issend(want, sizes[i], MPI_BYTE, t_rank, tag, MPI_COMM_WORLD, &send);
			if (round % 3 == 1) {
				MPI_Request_get_status(send, &flag, MPI_STATUS_IGNORE);
				t_true(!flag,
				       "round %d, %d bytes: the send has ended before its receive",
				       round, sizes[i]);
				MPI_Probe(t_rank, tag, MPI_COMM_WORLD, &st);
			}
			if (round % 3 == 0)
				MPI_Wait(&receive, &st);
			else
				MPI_Recv(in[0], MAX, MPI_BYTE, t_rank, tag, MPI_COMM_WORLD, &st);
			MPI_Request_get_status(send, &flag, MPI_STATUS_IGNORE);
			t_true(flag, "round %d, %d bytes: the receive has ended, but not the send",
			       round, sizes[i]);
			t_status(&st, t_rank, tag, (size_t)sizes[i]);
			t_verify(in[0], (size_t)sizes[i],
				 (struct t_msg){t_rank, tag, (unsigned)round});
			MPI_Wait(&send, MPI_STATUS_IGNORE);
		}
	}
	t_end();
}

static void truncation(void)
{
	static const int size[][2] = {{1, 0},         {200, 100},    {4097, 1},
				      {20000, 19999}, {100000, 100}, {MAX, 100000}};
	MPI_Comm comm;
	unsigned int i;
	int way;

	for (way = 0; way < WAYS; way++) {
		t_begin("semantics: truncation, received %s", way_names[way]);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		warm_up(BUSY, comm);
		warm_up(TAG, comm);
		for (i = 0; i < sizeof(size) / sizeof(size[0]); i++)
			receive_truncated(way, comm, size[i][0], size[i][1]);
		MPI_Comm_free(&comm);
		t_end();
	}
}

int main(int argc, char **argv)
{
	int i;

	t_init(&argc, &argv, 2);
	out = t_alloc(8 * MAX);
	want = t_alloc(2 * MAX);
	for (i = 0; i < N; i++)
		in[i] = t_alloc(2 * MAX);
	if (argc > 1 && !strcmp(argv[1], "room")) {
		room_again();
	} else {
		cancelled_sends();
		freed_receives();
		overlapping_sends();
		buffered_sends();
		truncation();
		synchronous_to_itself();
	}
	free(out);
	free(want);
	for (i = 0; i < N; i++)
		free(in[i]);
	return t_finish();
}
