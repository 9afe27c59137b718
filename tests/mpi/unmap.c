/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unmap.c - memory that is given back to the system while an operation is pending beside it. A
 * mapping that was transferred whole once may be registered as a whole. The program may
 * nevertheless give back all of it except the buffers of pending operations, and use the addresses
 * for other memory at once. Rank 1, the owner, has the memory. Rank 0, the peer, has a buffer of
 * its own.
 *
 * unmap [PART...]: "ways", "many", "segments", "shared", "coll", "rma", "heap". Without arguments
 * all of these run.
 * unmap threads ROUNDS
 */
#define _GNU_SOURCE
#include "unmap.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

size_t unmap_page;
unsigned char *unmap_mirror, *unmap_spare;
const size_t unmap_most = (size_t)UNMAP_HUGE_UNITS * UNMAP_HUGE_PAGE;
const size_t unmap_large = (size_t)256 << 10;
struct unmap_stream unmap_all;

/* ---- transfers ---- */

struct t_msg unmap_next_message(struct unmap_stream *stream, int src, int tag)
{
	return (struct t_msg){src, tag, stream->seq++};
}

struct t_msg unmap_exchange(struct unmap_stream *stream, unsigned char *part, size_t bytes)
{
	struct t_msg to = unmap_next_message(stream, OWNER, TAG),
		     back = unmap_next_message(stream, PEER, TAG);

	if (t_rank == OWNER) {
		t_fill(part, bytes, to);
		MPI_Send(part, (int)bytes, MPI_BYTE, PEER, TAG, stream->comm);
		MPI_Recv(part, (int)bytes, MPI_BYTE, PEER, TAG, stream->comm, MPI_STATUS_IGNORE);
		t_verify(part, bytes, back);
	} else if (t_rank == PEER) {
		memset(stream->mirror, 0xee, bytes);
		MPI_Recv(stream->mirror, (int)bytes, MPI_BYTE, OWNER, TAG, stream->comm,
			 MPI_STATUS_IGNORE);
		t_verify(stream->mirror, bytes, to);
		t_fill(stream->mirror, bytes, back);
		MPI_Send(stream->mirror, (int)bytes, MPI_BYTE, OWNER, TAG, stream->comm);
	}
	return back;
}

void unmap_start(struct unmap_stream *stream, struct unmap_pending *pending, unsigned char *buf,
		 size_t bytes)
{
	const int i = pending->count++, tag = TAG_PENDING + i;

	pending->bytes[i] = bytes;
	pending->message[i] = unmap_next_message(stream, pending->send ? OWNER : PEER, tag);
	if (t_rank != OWNER)
		return;
	pending->buf[i] = buf;
	if (pending->send) {
		t_fill(buf, bytes, pending->message[i]);
		MPI_Issend(buf, (int)bytes, MPI_BYTE, PEER, tag, stream->comm,
			   &pending->request[i]);
	} else {
		memset(buf, 0xee, bytes);
		MPI_Irecv(buf, (int)bytes, MPI_BYTE, PEER, tag, stream->comm, &pending->request[i]);
	}
}

void unmap_finish(struct unmap_stream *stream, struct unmap_pending *pending)
{
	for (int i = 0; i < pending->count; i++) {
		const int tag = TAG_PENDING + i, bytes = (int)pending->bytes[i];

		if (t_rank == OWNER) {
			MPI_Wait(&pending->request[i], MPI_STATUS_IGNORE);
			t_verify(pending->buf[i], pending->bytes[i], pending->message[i]);
		} else if (t_rank == PEER && pending->send) {
			memset(stream->mirror, 0xee, pending->bytes[i]);
			MPI_Recv(stream->mirror, bytes, MPI_BYTE, OWNER, tag, stream->comm,
				 MPI_STATUS_IGNORE);
			t_verify(stream->mirror, pending->bytes[i], pending->message[i]);
		} else if (t_rank == PEER) {
			t_fill(stream->mirror, pending->bytes[i], pending->message[i]);
			MPI_Send(stream->mirror, bytes, MPI_BYTE, OWNER, tag, stream->comm);
		}
	}
}

/* ---- registrations ---- */

struct unmap_made unmap_made_until_now(void)
{
	return (struct unmap_made){t_counter("pml_tupleq_registrations"),
				   t_counter("pml_tupleq_reg_failed"),
				   t_counter("pml_tupleq_recv_copied")};
}

void unmap_must_have_registered(struct unmap_made before)
{
	const struct unmap_made now = unmap_made_until_now();

	t_true(now.registrations < 0 || now.registrations > before.registrations ||
		       now.failures > before.failures || now.copies > before.copies,
	       "new memory was transferred by an old registration");
}

/* ---- parts ---- */

static const struct check {
	const char *name;
	void (*run)(void);
} checks[] = {
	{"ways", unmap_check_ways},         {"many", unmap_check_many},
	{"segments", unmap_check_segments}, {"shared", unmap_check_shared},
	{"coll", unmap_check_coll},         {"rma", unmap_check_rma},
	{"heap", unmap_check_heap},
};

static bool is_wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	const bool threads = argc == 3 && !strcmp(argv[1], "threads");
	int level =
		t_init_thread(&argc, &argv, 2, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);

	unmap_page = (size_t)sysconf(_SC_PAGESIZE);
	unmap_mirror = unmap_map_anonymous(unmap_most);
	unmap_spare = unmap_map_anonymous(unmap_most);
	MPI_Comm_dup(MPI_COMM_WORLD, &unmap_all.comm);
	unmap_all.mirror = unmap_mirror;
	if (threads && level < MPI_THREAD_MULTIPLE)
		t_skip("unmap: threads", "MPI provides no MPI_THREAD_MULTIPLE");
	else if (threads)
		unmap_check_threads((int)t_arg(argc, argv, 2, 10));
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !threads; i++)
		if (is_wanted(argc, argv, checks[i].name))
			checks[i].run();
	MPI_Comm_free(&unmap_all.comm);
	return t_finish();
}
