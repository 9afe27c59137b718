/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_signal.h - signal actions as the kernel has them, with our handlers in them.
 */
#ifndef SHCA_NEXT_SIGNAL_H
#define SHCA_NEXT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* Calls the C library's sigaction(). */
int shca_kernel_sigaction(int nr, const struct sigaction *act, struct sigaction *old);

/* Sets and returns the program's action for SIGSEGV, as sigaction() would, if a handler of the
 * clock is in place there. Returns false if none is: then the kernel is to be asked. NULL: there
 * never is one (next_tsc.c sets it). */
extern bool (*shca_signal_set_segv)(const struct sigaction *act, struct sigaction *old);

#endif
