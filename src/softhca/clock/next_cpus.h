/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_cpus.h - lets the calling thread run where the program believes that it may.
 */
#ifndef SHCA_NEXT_CPUS_H
#define SHCA_NEXT_CPUS_H

#include <sched.h>
#include <stdbool.h>

/* Lets the thread leave the CPU of the threads in virtual time, which is stored. Returns false if
 * the thread isn't kept there. */
bool shca_cpus_unpin(cpu_set_t *pinned);
/* Undoes shca_cpus_unpin(). */
void shca_cpus_pin(const cpu_set_t *pinned);

#endif
