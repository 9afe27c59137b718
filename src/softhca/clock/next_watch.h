/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_watch.h - descriptors that a thread waits for in virtual time, watched in real time.
 */
#ifndef SHCA_NEXT_WATCH_H
#define SHCA_NEXT_WATCH_H

#include <poll.h>

/* Ends the next sleep of the calling thread, which has called shca_program_watch(), when a
 * descriptor has something. Returns a watch for shca_unwatch(), or -1 if the descriptors can't be
 * watched. Called inside of a call. */
int shca_watch(const struct pollfd *fds, nfds_t count);
/* Ends a watch (-1: none). */
void shca_unwatch(int watch);

#endif
