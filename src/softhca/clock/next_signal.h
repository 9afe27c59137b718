/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_signal.h - what the files that have to do with signals share.
 */
#ifndef SHCA_NEXT_SIGNAL_H
#define SHCA_NEXT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* The C library's sigaction(). */
int shca_kernel_sigaction(int nr, const struct sigaction *act, struct sigaction *old);
/* Does what sigaction() does for SIGSEGV, if the handler in place is that of trapped instructions.
 */
bool shca_tsc_takes_segv(const struct sigaction *act, struct sigaction *old);

#endif
