/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until an event is there: a thread makes progress for a while, then sleeps. */
#ifndef P4_WAIT_H
#define P4_WAIT_H

#include <stdbool.h>

#include <portals4.h>

#include "handles.h"

/* Wakes threads that wait. Called after each change that may end a wait, with the lock or
 * without. */
void p4_wait_notify(void);

/*
 * Calls ready(arg) until it returns true, or `timeout` ms have passed, or PtlAbort() was called.
 * Returns PTL_OK, PTL_EQ_EMPTY (time is over) or PTL_ABORTED. Called without the lock, as are the
 * other functions that wait.
 */
int p4_wait(bool (*ready)(void *arg), void *arg, ptl_time_t timeout);

/* Calls ready(arg) until it returns true, even after PtlAbort(): for what must have ended before
 * the user may go on. */
void p4_wait_for_end(bool (*ready)(void *arg), void *arg);

/* Objects of one kind, of which a user waits for any. */
struct p4_poll {
	enum p4_kind kind;
	const ptl_handle_any_t *handles;
	unsigned size;
	/* Takes an object's event or value. Returns PTL_EQ_EMPTY if there is none, PTL_INTERRUPTED
	 * if the object is no longer that of the handle, else the result. */
	int (*take)(void *object, ptl_handle_any_t handle, unsigned which, void *arg);
	void *arg;
};

/*
 * Waits until one of the objects has something, and sets *which. `valid` is false if the user's
 * other arguments are wrong. Returns take()'s result; PTL_EQ_EMPTY if the time is over;
 * PTL_INTERRUPTED if an object was freed meanwhile; PTL_ABORTED, PTL_NO_INIT or PTL_ARG_INVALID.
 */
int p4_wait_any(const struct p4_poll *poll, bool valid, ptl_time_t timeout, unsigned *which);

#endif
