/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_watch.h - descriptors that a thread waits for in virtual time, watched in real time.
 */
#ifndef SHCA_NEXT_WATCH_H
#define SHCA_NEXT_WATCH_H

#include <poll.h>

/* Ends the sleep of the calling thread, which has said that it watches something, as soon as a
 * descriptor has something. Returns what shca_unwatch() wants, or -1: nothing tells of them. */
int shca_watch(const struct pollfd *fds, nfds_t count);
void shca_unwatch(int watch);

#endif
