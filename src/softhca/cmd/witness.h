/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * witness.h - a process in the launcher's process group that nobody signals by itself. A signal
 * that the witness receives went to the whole group, so the command has received it too.
 */
#ifndef SHCA_WITNESS_H
#define SHCA_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct shca_witness {
	pid_t pid;
	struct shca_witness_page *page; /* shared with the witness */
};

/* Starts the witness, which takes the signals of `blocked`. If that fails, shca_witness_saw()
 * returns false. */
void shca_witness_start(struct shca_witness *witness, const sigset_t *blocked);
void shca_witness_end(struct shca_witness *witness);
/* Returns true if a process sent the signal to the whole group, also if the same process sent it to
 * the launcher first, as timeout(1) does. Waits a moment for the witness. */
bool shca_witness_saw(const struct shca_witness *witness, const siginfo_t *si);

#endif
