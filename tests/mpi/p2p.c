/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.c - p2p [BYTES]: every send mode at all sizes near powers of two and near limits of
 * protocols, up to BYTES, with the receive posted in time and late. Any number of ranks.
 */
#include "check.h"
#include "mode.h"

enum { TAG_DATA = 7, TAG_GO = 8, SLACK = 64 };

static int *sizes, nsizes, max_bytes;
static unsigned char *out, *in;
static unsigned int seq; /* all ranks have the same */

/* Makes the list of sizes: powers of two and the limits of protocols, each with its neighbours. */
static void make_sizes(void)
{
	static const int more[] = {96, 192, 912, 3072, 12288, 65536 + 4096};
	size_t i;
	int k, d;

	sizes = t_alloc(sizeof(*sizes) * 128);
	sizes[nsizes++] = 0;
	for (k = 0; k <= 22; k++)
		for (d = -1; d <= 1; d++)
			if ((1 << k) + d > (k ? 1 : 0) && (1 << k) + d <= max_bytes &&
			    !(k == 1 && d < 0))
				sizes[nsizes++] = (1 << k) + d;
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		for (d = -1; d <= 1; d++)
			if (more[i] + d <= max_bytes)
				sizes[nsizes++] = more[i] + d;
}

/* Returns the length of a receive: exactly the message's size, or more. */
static int room(int bytes)
{
	return seq % 2 ? bytes : bytes + SLACK;
}

static void prepare(int bytes)
{
	t_fill(out, (size_t)bytes, (struct t_msg){t_rank, TAG_DATA, seq});
	memset(in, 0xee, (size_t)bytes + SLACK);
}

static void check(const MPI_Status *st, int src, int bytes)
{
	t_status(st, src, TAG_DATA, (size_t)bytes);
	t_verify(in, (size_t)bytes, (struct t_msg){src, TAG_DATA, seq});
	t_untouched(in + bytes, SLACK, 0xee);
}

/* Sends round the ring; each receive is posted before its send starts. */
static void early(enum mode mode, int bytes)
{
	MPI_Request recv, go, req;
	MPI_Status st;

	prepare(bytes);
	MPI_Irecv(in, room(bytes), MPI_BYTE, t_left, TAG_DATA, MPI_COMM_WORLD, &recv);
	MPI_Irecv(NULL, 0, MPI_BYTE, t_right, TAG_GO, MPI_COMM_WORLD, &go);
	MPI_Send(NULL, 0, MPI_BYTE, t_left, TAG_GO, MPI_COMM_WORLD);
	MPI_Wait(&go, MPI_STATUS_IGNORE);
	req = mode_send(mode, out, bytes, MPI_BYTE, t_right, TAG_DATA, MPI_COMM_WORLD);
	MPI_Wait(&recv, &st);
	check(&st, t_left, bytes);
	mode_wait(&req);
}

/* Sends in pairs; each send starts before its receive is posted. */
static void late(enum mode mode, int bytes)
{
	int peer = t_rank ^ 1;
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Status st;

	if (peer >= t_size)
		return;
	prepare(bytes);
	if (!mode_blocks(mode) || t_rank % 2 == 0)
		req = mode_send(mode, out, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	if (!mode_blocks(mode))
		MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG_GO, NULL, 0, MPI_BYTE, peer, TAG_GO,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, room(bytes), MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD, &st);
	check(&st, peer, bytes);
	if (mode_blocks(mode) && t_rank % 2 == 1)
		mode_send(mode, out, bytes, MPI_BYTE, peer, TAG_DATA, MPI_COMM_WORLD);
	mode_wait(&req);
}

static void all_sizes(const char *when, enum mode mode, void (*exchange)(enum mode, int))
{
	static char doing[64];
	int i;

	t_begin("p2p %s %s", mode_names[mode], when);
	for (i = 0; i < nsizes; i++, seq++) {
		snprintf(doing, sizeof(doing), "%d bytes", sizes[i]);
		t_doing(doing);
		exchange(mode, sizes[i]);
	}
	t_end();
}

static void sendrecv(void)
{
	int i;
	MPI_Status st;

	t_begin("p2p sendrecv");
	for (i = 0; i < nsizes; i++, seq++) {
		prepare(sizes[i]);
		MPI_Sendrecv(out, sizes[i], MPI_BYTE, t_right, TAG_DATA, in, room(sizes[i]),
			     MPI_BYTE, t_left, TAG_DATA, MPI_COMM_WORLD, &st);
		check(&st, t_left, sizes[i]);
	}
	t_end();
	t_begin("p2p sendrecv_replace");
	for (i = 0; i < nsizes; i++, seq++) {
		prepare(sizes[i]);
		memcpy(in, out, (size_t)sizes[i]);
		MPI_Sendrecv_replace(in, sizes[i], MPI_BYTE, t_right, TAG_DATA, t_left, TAG_DATA,
				     MPI_COMM_WORLD, &st);
		check(&st, t_left, sizes[i]);
	}
	t_end();
}

/* Uses one buffer in several sends at once, which MPI allows. */
static void shared_buffer(void)
{
	int i, k;
	MPI_Request req[4];

	t_begin("p2p one buffer in four sends");
	for (i = 0; i < nsizes; i++, seq++) {
		prepare(sizes[i]);
		for (k = 0; k < 4; k++)
			MPI_Isend(out, sizes[i], MPI_BYTE, t_right, TAG_DATA, MPI_COMM_WORLD,
				  &req[k]);
		for (k = 0; k < 4; k++) {
			MPI_Status st;

			memset(in, 0xee, (size_t)sizes[i] + SLACK);
			MPI_Recv(in, room(sizes[i]), MPI_BYTE, t_left, TAG_DATA, MPI_COMM_WORLD,
				 &st);
			check(&st, t_left, sizes[i]);
		}
		MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	}
	t_end();
}

int main(int argc, char **argv)
{
	void *attached;
	int size, mode;

	t_init(&argc, &argv, 1);
	max_bytes = (int)t_arg(argc, argv, 1, 4 << 20);
	make_sizes();
	out = t_alloc((size_t)max_bytes + SLACK);
	in = t_alloc((size_t)max_bytes + SLACK);
	size = 4 * (max_bytes + MPI_BSEND_OVERHEAD + SLACK);
	MPI_Buffer_attach(t_alloc((size_t)size), size);

	for (mode = 0; mode < MODES; mode++) {
		all_sizes("in time", mode, early);
		if (!mode_ready(mode))
			all_sizes("late", mode, late);
	}
	sendrecv();
	shared_buffer();

	MPI_Buffer_detach(&attached, &size);
	free(attached);
	free(in);
	free(out);
	free(sizes);
	return t_finish();
}
