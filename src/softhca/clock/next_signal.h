/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_signal.h - signal actions as the kernel has them, with our handlers in them.
 */
#ifndef SHCA_NEXT_SIGNAL_H
#define SHCA_NEXT_SIGNAL_H

#include <signal.h>

/* Calls the C library's sigaction(). */
int shca_kernel_sigaction(int nr, const struct sigaction *act, struct sigaction *old);

#endif
