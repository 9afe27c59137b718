/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_tsc.h - the handler of trapped instructions, and the program's for the same signal.
 */
#ifndef SHCA_NEXT_TSC_H
#define SHCA_NEXT_TSC_H

#include <signal.h>
#include <stdbool.h>

/* Does what sigaction() does for SIGSEGV, if the handler in place is that of trapped instructions.
 */
bool shca_tsc_takes_segv(const struct sigaction *act, struct sigaction *old);

#endif
