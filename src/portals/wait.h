/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until an event is there: a thread makes progress for a while, then sleeps. */
#ifndef P4_WAIT_H
#define P4_WAIT_H

#include <stdbool.h>

#include <portals4.h>

/* Wakes threads that wait: an event was added to a queue, or a counting event has changed. */
void p4_notify(void);

/*
 * Calls ready(arg) until it returns true, or `timeout` ms have passed, or PtlAbort() was called.
 * Returns PTL_OK, PTL_EQ_EMPTY (time is over) or PTL_ABORTED.
 */
int p4_wait(bool (*ready)(void *arg), void *arg, ptl_time_t timeout);

#endif
