/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_signal.h - the C library's signal handlers, behind the program's.
 */
#ifndef SHCA_NEXT_SIGNAL_H
#define SHCA_NEXT_SIGNAL_H

#include <signal.h>

/* The C library's sigaction(). */
int shca_kernel_sigaction(int nr, const struct sigaction *act, struct sigaction *old);

#endif
