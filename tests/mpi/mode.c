/* SPDX-License-Identifier: BSD-3-Clause */
/* mode.c - see mode.h. */
#include "mode.h"

const char *const mode_names[MODES] = {
	[MODE_SEND] = "send",
	[MODE_ISEND] = "isend",
	[MODE_SSEND] = "ssend",
	[MODE_ISSEND] = "issend",
	[MODE_RSEND] = "rsend",
	[MODE_IRSEND] = "irsend",
	[MODE_BSEND] = "bsend",
	[MODE_IBSEND] = "ibsend",
	[MODE_SEND_INIT] = "send_init",
	[MODE_SSEND_INIT] = "ssend_init",
	[MODE_RSEND_INIT] = "rsend_init",
	[MODE_BSEND_INIT] = "bsend_init",
};

typedef int (*blocking_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*request_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const blocking_fn blocking[MODES] = {
	[MODE_SEND] = MPI_Send,
	[MODE_SSEND] = MPI_Ssend,
	[MODE_RSEND] = MPI_Rsend,
	[MODE_BSEND] = MPI_Bsend,
};

static const request_fn immediate[MODES] = {
	[MODE_ISEND] = MPI_Isend,
	[MODE_ISSEND] = MPI_Issend,
	[MODE_IRSEND] = MPI_Irsend,
	[MODE_IBSEND] = MPI_Ibsend,
};

static const request_fn persistent[MODES] = {
	[MODE_SEND_INIT] = MPI_Send_init,
	[MODE_SSEND_INIT] = MPI_Ssend_init,
	[MODE_RSEND_INIT] = MPI_Rsend_init,
	[MODE_BSEND_INIT] = MPI_Bsend_init,
};

bool mode_ready(enum mode mode)
{
	return mode == MODE_RSEND || mode == MODE_IRSEND || mode == MODE_RSEND_INIT;
}

bool mode_buffered(enum mode mode)
{
	return mode == MODE_BSEND || mode == MODE_IBSEND || mode == MODE_BSEND_INIT;
}

bool mode_blocks(enum mode mode)
{
	return blocking[mode] && !mode_buffered(mode);
}

MPI_Request mode_send(enum mode mode, const void *buf, int count, MPI_Datatype type, int dest,
		      int tag, MPI_Comm comm)
{
	MPI_Request req = MPI_REQUEST_NULL;

	if (blocking[mode]) {
		blocking[mode](buf, count, type, dest, tag, comm);
	} else if (immediate[mode]) {
		immediate[mode](buf, count, type, dest, tag, comm, &req);
	} else {
		persistent[mode](buf, count, type, dest, tag, comm, &req);
		MPI_Start(&req);
	}
	return req;
}

void mode_wait(MPI_Request *req)
{
	MPI_Wait(req, MPI_STATUS_IGNORE);
	if (*req != MPI_REQUEST_NULL)
		MPI_Request_free(req);
}
