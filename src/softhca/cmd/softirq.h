/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softirq.h - whether the kernel still has to deliver what was written to a socket.
 */
#ifndef SHCA_SOFTIRQ_H
#define SHCA_SOFTIRQ_H

#include <stdbool.h>

/* Returns true if a thread of the kernel executes softirqs. On a busy machine the kernel leaves the
 * delivery on the loopback device to such a thread: until it has run, the reader of the socket
 * sleeps. Returns false where these threads can't be seen, as in a container. For one thread. */
bool shca_softirqs_pending(void);

#endif
