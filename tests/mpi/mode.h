/* SPDX-License-Identifier: BSD-3-Clause */
/* mode.h - every way to send a message in MPI, as a value. */
#ifndef T_MODE_H
#define T_MODE_H

#include <stdbool.h>

#include <mpi.h>

enum mode {
	MODE_SEND,
	MODE_ISEND,
	MODE_SSEND,
	MODE_ISSEND,
	MODE_RSEND,
	MODE_IRSEND,
	MODE_BSEND,
	MODE_IBSEND,
	MODE_SEND_INIT,
	MODE_SSEND_INIT,
	MODE_RSEND_INIT,
	MODE_BSEND_INIT,
	MODES,
};

extern const char *const mode_names[MODES];

bool mode_ready(enum mode mode);    /* needs a receive that is already posted */
bool mode_buffered(enum mode mode); /* needs MPI_Buffer_attach */
bool mode_blocks(enum mode mode);   /* may wait for the receive */
/* Starts a send. Returns its request, MPI_REQUEST_NULL for a blocking mode. */
MPI_Request mode_send(enum mode mode, const void *buf, int count, MPI_Datatype type, int dest,
		      int tag, MPI_Comm comm);
/* Waits for a send of any mode: blocking, nonblocking or persistent. */
void mode_wait(MPI_Request *req);

#endif
