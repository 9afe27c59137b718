/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_tsc.h - the handler of trapped instructions, and the program's for the same signal.
 */
#ifndef SHCA_NEXT_TSC_H
#define SHCA_NEXT_TSC_H

#include <signal.h>
#include <stdbool.h>

/* Sets and returns the program's action for SIGSEGV, as sigaction() would. Returns false if the
 * handler of trapped instructions isn't in place: then the kernel is to be asked. */
bool shca_tsc_set_segv(const struct sigaction *act, struct sigaction *old);

#endif
