/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.h - the command that softhca run runs: starting it, passing signals on, waiting for it.
 */
#ifndef SHCA_CHILD_H
#define SHCA_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "witness.h"

/* Signal state that the launcher was started with, for the command. */
struct shca_signals {
	sigset_t handled; /* signals that shca_child_wait() takes */
	sigset_t old_mask;
	struct sigaction old_chld;
};

struct shca_child {
	pid_t pid;
	bool stopped;
	bool stop_asked; /* a terminal stop came: when the command stops, so does the launcher */
	int signal; /* the signal that ended the command, unless users end commands by it; or 0 */
	/* Called for every other child that ended; may be NULL. */
	void (*other)(void *arg, const siginfo_t *how);
	void *arg;
	const struct shca_witness *witness;
};

/* Blocks the signals that are passed on, from now until shca_child_wait() takes them. */
void shca_signals_hold(struct shca_signals *signals);
/* Starts argv, which is killed when the launcher ends before it. Returns 0 or -errno. A command
 * that can't be executed ends at once with status 126 or 127, and prints why. */
int shca_child_start(struct shca_child *child, const struct shca_signals *signals, char **argv);
/* Passes signals on until the command ends. Returns its exit status, or 128 plus the signal that
 * ended it. */
int shca_child_wait(struct shca_child *child, const struct shca_signals *signals);

#endif
