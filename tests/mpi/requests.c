/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requests.c - requests [SEED]: every way to complete requests, persistent and null ones, all
 * predefined types, MPI_PROC_NULL, MPI_COMM_SELF. Two ranks or more.
 */
#include "check.h"

enum { TAG = 3, N = 24, MAX = 20000, TYPE_ROUNDS = 5 };

static struct t_rng rng;
static unsigned char out[N][MAX], in[N][MAX];
static int lengths[N], order[N];
static MPI_Request send[N], recv[N];
static bool seen[N];

/* Starts a round: receive i has tag i from the left, and the sends go in another order. */
static void start(unsigned int round)
{
	struct t_rng common = t_rng(round, 1, 1);
	int i;

	for (i = 0; i < N; i++) {
		lengths[i] = t_chance(&common, 30) ? t_below(&common, MAX) : t_below(&common, 300);
		order[i] = i;
		seen[i] = false;
		MPI_Irecv(in[i], MAX, MPI_BYTE, t_left, i, MPI_COMM_WORLD, &recv[i]);
	}
	t_shuffle(&rng, order, N);
	for (i = 0; i < N; i++) {
		int k = order[i];

		t_fill(out[k], (size_t)lengths[k], (struct t_msg){t_rank, k, round});
		MPI_Isend(out[k], lengths[k], MPI_BYTE, t_right, k, MPI_COMM_WORLD, &send[k]);
	}
}

static void done(int i, const MPI_Status *st, unsigned int round)
{
	t_true(i >= 0 && i < N && !seen[i], "request %d completed twice, or is none", i);
	seen[i] = true;
	t_eq(recv[i] == MPI_REQUEST_NULL, true);
	t_status(st, t_left, i, (size_t)lengths[i]);
	t_verify(in[i], (size_t)lengths[i], (struct t_msg){t_left, i, round});
}

static void by_wait(unsigned int round)
{
	MPI_Status st;
	int i;

	for (i = N - 1; i >= 0; i--) {
		MPI_Wait(&recv[i], &st);
		done(i, &st, round);
	}
}

static void by_test(unsigned int round)
{
	MPI_Status st;
	int left_over = N, flag, i;

	while (left_over)
		for (i = 0; i < N; i++) {
			if (recv[i] == MPI_REQUEST_NULL)
				continue;
			MPI_Test(&recv[i], &flag, &st);
			if (flag)
				done(i, &st, round), left_over--;
		}
}

static void by_any(unsigned int round)
{
	MPI_Status st;
	int left_over, flag, i;

	for (left_over = N; left_over; left_over--) {
		flag = 1;
		if (left_over % 2)
			MPI_Waitany(N, recv, &i, &st);
		else
			do
				MPI_Testany(N, recv, &i, &flag, &st);
			while (!flag);
		done(i, &st, round);
	}
	MPI_Waitany(N, recv, &i, &st);
	t_eq(i, MPI_UNDEFINED);
}

static void by_some(unsigned int round)
{
	MPI_Status st[N];
	int which[N], left_over, n, i;

	for (left_over = N; left_over; left_over -= n) {
		if (left_over % 2)
			MPI_Waitsome(N, recv, &n, which, st);
		else
			MPI_Testsome(N, recv, &n, which, st);
		for (i = 0; i < n; i++)
			done(which[i], &st[i], round);
	}
}

static void by_all(unsigned int round)
{
	MPI_Status st[N];
	int flag = 0, i;

	if (round % 2)
		MPI_Waitall(N, recv, st);
	else
		while (!flag)
			MPI_Testall(N, recv, &flag, st);
	for (i = 0; i < N; i++)
		done(i, &st[i], round);
}

static void by_get_status(unsigned int round)
{
	MPI_Status st, again;
	int flag, i;

	for (i = 0; i < N; i++) {
		do
			MPI_Request_get_status(recv[i], &flag, &st);
		while (!flag);
		t_status(&st, t_left, i, (size_t)lengths[i]);
		MPI_Wait(&recv[i], &again);
		done(i, &again, round);
	}
}

static void completions(void)
{
	static const struct {
		const char *name;
		void (*run)(unsigned int round);
	} way[] = {{"wait", by_wait},
		   {"test", by_test},
		   {"waitany and testany", by_any},
		   {"waitsome and testsome", by_some},
		   {"waitall and testall", by_all},
		   {"request_get_status", by_get_status}};
	unsigned int round, i;

	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		t_begin("requests completed by %s", way[i].name);
		for (round = 0; round < 20; round++) {
			start(round);
			way[i].run(round);
			MPI_Waitall(N, send, MPI_STATUSES_IGNORE);
		}
		t_end();
	}
}

static void persistent(void)
{
	MPI_Request req[2 * N];
	unsigned int round;
	int i;

	t_begin("requests persistent, started a hundred times");
	for (i = 0; i < N; i++) {
		lengths[i] = i * 700;
		MPI_Recv_init(in[i], MAX, MPI_BYTE, t_left, i, MPI_COMM_WORLD, &req[i]);
		MPI_Send_init(out[i], lengths[i], MPI_BYTE, t_right, i, MPI_COMM_WORLD,
			      &req[N + i]);
	}
	for (round = 0; round < 100; round++) {
		MPI_Status st[2 * N];

		for (i = 0; i < N; i++)
			t_fill(out[i], (size_t)lengths[i], (struct t_msg){t_rank, i, round});
		if (round % 2)
			MPI_Startall(2 * N, req);
		else
			for (i = 2 * N - 1; i >= 0; i--)
				MPI_Start(&req[i]);
		MPI_Waitall(2 * N, req, st);
		for (i = 0; i < N; i++) {
			t_status(&st[i], t_left, i, (size_t)lengths[i]);
			t_verify(in[i], (size_t)lengths[i], (struct t_msg){t_left, i, round});
		}
	}
	/* An inactive request is complete, with an empty status. */
	{
		MPI_Status st;
		int flag;

		MPI_Test(&req[0], &flag, &st);
		t_eq(flag, 1);
		t_status(&st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	}
	for (i = 0; i < 2 * N; i++)
		MPI_Request_free(&req[i]);
	t_end();
}

/* Frees sends while they are active: their messages arrive nevertheless. */
static void freed(void)
{
	unsigned int round;
	int i;

	t_begin("requests of sends freed while active");
	for (round = 0; round < 20; round++) {
		start(round);
		for (i = 0; i < N; i++)
			MPI_Request_free(&send[i]);
		by_all(round);
		/* The buffers are free when all messages have arrived. */
		MPI_Barrier(MPI_COMM_WORLD);
	}
	t_end();
}

/* Tries to free the request of a nonblocking collective that is under way, which MPI forbids: Open
 * MPI returns an error, and the operation goes on. Rank 0 begins before the others. */
static void freed_collective(void)
{
	int mine = t_rank, sum = -1, class = MPI_SUCCESS;
	MPI_Request req;

	t_begin("requests of collectives aren't freed while active");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (t_rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
	if (t_rank == 0) {
		MPI_Error_class(MPI_Request_free(&req), &class);
		t_eq(class, MPI_ERR_REQUEST);
		t_true(req != MPI_REQUEST_NULL, "the handle is gone");
		for (int rank = 1; rank < t_size; rank++)
			MPI_Send(NULL, 0, MPI_BYTE, rank, TAG, MPI_COMM_WORLD);
	}
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	t_eq(sum, t_size * (t_size - 1) / 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	t_end();
}

static void null_process(void)
{
	MPI_Request req[4];
	MPI_Message msg;
	MPI_Status st;
	int flag, i;

	t_begin("requests of MPI_PROC_NULL");
	MPI_Send(out, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
	MPI_Ssend(out, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
	MPI_Recv(in, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &st);
	t_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Sendrecv(out, 8, MPI_BYTE, MPI_PROC_NULL, TAG, in, 8, MPI_BYTE, MPI_PROC_NULL, TAG,
		     MPI_COMM_WORLD, &st);
	t_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Probe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &st);
	t_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Iprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &flag, &st);
	t_eq(flag, 1);
	MPI_Mprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &msg, &st);
	t_eq(msg == MPI_MESSAGE_NO_PROC, true);
	MPI_Mrecv(in, 8, MPI_BYTE, &msg, &st);
	t_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	t_eq(msg == MPI_MESSAGE_NULL, true);
	MPI_Isend(out, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &req[0]);
	MPI_Irecv(in, 8, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &req[1]);
	MPI_Send_init(out, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &req[2]);
	MPI_Recv_init(in, 8, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &req[3]);
	MPI_Startall(2, req + 2);
	MPI_Wait(&req[1], &st);
	t_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	for (i = 2; i < 4; i++)
		MPI_Request_free(&req[i]);
	t_end();
}

static void self(void)
{
	static const int size[] = {0, 1, 100, 4096, 8193, MAX};
	MPI_Request req;
	MPI_Status st;
	unsigned int i;
	int flag;

	t_begin("requests on MPI_COMM_SELF");
	for (i = 0; i < 60; i++) {
		int n = size[i % 6];

		t_fill(out[0], (size_t)n, (struct t_msg){t_rank, TAG, i});
		if (i % 3 == 0) {
			MPI_Isend(out[0], n, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &req);
			MPI_Recv(in[0], MAX, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &st);
		} else if (i % 3 == 1) {
			MPI_Irecv(in[0], MAX, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF,
				  &req);
			MPI_Send(out[0], n, MPI_BYTE, 0, TAG, MPI_COMM_SELF);
			MPI_Wait(&req, &st);
		} else {
			MPI_Issend(out[0], n, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &req);
			MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_SELF, &st);
			t_status(&st, 0, TAG, (size_t)n);
			MPI_Recv(in[0], n, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &st);
		}
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		t_status(&st, 0, TAG, (size_t)n);
		t_verify(in[0], (size_t)n, (struct t_msg){t_rank, TAG, i});
	}
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &st);
	t_eq(flag, 0);
	t_end();

	t_begin("requests to the own rank of MPI_COMM_WORLD");
	for (i = 0; i < 50; i++) {
		MPI_Irecv(in[0], MAX, MPI_BYTE, t_rank, TAG, MPI_COMM_WORLD, &req);
		t_fill(out[0], (size_t)size[i % 6], (struct t_msg){t_rank, TAG, i});
		MPI_Send(out[0], size[i % 6], MPI_BYTE, t_rank, TAG, MPI_COMM_WORLD);
		MPI_Wait(&req, &st);
		t_status(&st, t_rank, TAG, (size_t)size[i % 6]);
		t_verify(in[0], (size_t)size[i % 6], (struct t_msg){t_rank, TAG, i});
	}
	t_end();
}

/* The predefined types of C. */
static const struct named_type {
	MPI_Datatype type;
	const char *name;
} named_types[] = {
#define T(type)             \
	{                   \
		type, #type \
	}
	T(MPI_CHAR),
	T(MPI_SIGNED_CHAR),
	T(MPI_UNSIGNED_CHAR),
	T(MPI_BYTE),
	T(MPI_PACKED),
	T(MPI_WCHAR),
	T(MPI_SHORT),
	T(MPI_UNSIGNED_SHORT),
	T(MPI_INT),
	T(MPI_UNSIGNED),
	T(MPI_LONG),
	T(MPI_UNSIGNED_LONG),
	T(MPI_LONG_LONG),
	T(MPI_UNSIGNED_LONG_LONG),
	T(MPI_FLOAT),
	T(MPI_DOUBLE),
	T(MPI_LONG_DOUBLE),
	T(MPI_C_BOOL),
	T(MPI_INT8_T),
	T(MPI_INT16_T),
	T(MPI_INT32_T),
	T(MPI_INT64_T),
	T(MPI_UINT8_T),
	T(MPI_UINT16_T),
	T(MPI_UINT32_T),
	T(MPI_UINT64_T),
	T(MPI_AINT),
	T(MPI_COUNT),
	T(MPI_OFFSET),
	T(MPI_C_COMPLEX),
	T(MPI_C_DOUBLE_COMPLEX),
	T(MPI_C_LONG_DOUBLE_COMPLEX),
	T(MPI_2INT),
	T(MPI_FLOAT_INT)
#undef T
};

static void one_type(MPI_Datatype type, unsigned int round)
{
	static const int counts[TYPE_ROUNDS] = {0, 1, 3, 64, 600};
	int size, count, elements;
	MPI_Status st;

	MPI_Type_size(type, &size);
	for (int i = 0; i < TYPE_ROUNDS; i++, round++) {
		size_t bytes = (size_t)size * (size_t)counts[i];

		t_fill(out[0], bytes, (struct t_msg){t_rank, TAG, round});
		MPI_Sendrecv(out[0], counts[i], type, t_right, TAG, in[0], 601, type, t_left, TAG,
			     MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, type, &count);
		MPI_Get_elements(&st, type, &elements);
		t_eq(count, counts[i]);
		t_eq(elements % (counts[i] ? counts[i] : 1), 0);
		t_eq(st.MPI_SOURCE, t_left);
		t_verify(in[0], bytes, (struct t_msg){t_left, TAG, round});
	}
}

static void predefined_types(void)
{
	for (unsigned int i = 0; i < sizeof(named_types) / sizeof(named_types[0]); i++) {
		t_begin("requests with %s", named_types[i].name);
		one_type(named_types[i].type, i * TYPE_ROUNDS);
		t_end();
	}
}

static void tags(void)
{
	int tag[8] = {0, 1, 77, 32767, 32768, 1 << 20, (1 << 24) + 5, 0}, *ub, flag, i;
	MPI_Status st;

	t_begin("requests with tags up to MPI_TAG_UB");
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag);
	t_eq(flag, 1);
	tag[7] = *ub;
	for (i = 0; i < 24; i++) {
		int x = tag[i % 8] <= *ub ? tag[i % 8] : *ub;

		t_fill(out[0], 500, (struct t_msg){t_rank, x, (unsigned int)i});
		MPI_Sendrecv(out[0], 500, MPI_BYTE, t_right, x, in[0], MAX, MPI_BYTE,
			     i % 3 ? t_left : MPI_ANY_SOURCE, i % 5 ? x : MPI_ANY_TAG,
			     MPI_COMM_WORLD, &st);
		t_status(&st, t_left, x, 500);
		t_verify(in[0], 500, (struct t_msg){t_left, x, (unsigned int)i});
	}
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), (uint64_t)t_rank, 0);
	completions();
	persistent();
	freed();
	freed_collective();
	null_process();
	self();
	predefined_types();
	tags();
	return t_finish();
}
