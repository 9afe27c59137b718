/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loads.h - programs that load no library of LD_PRELOAD.
 */
#ifndef SHCA_LOADS_H
#define SHCA_LOADS_H

/* Warns of each word of a command line that names such a program. */
void shca_loads_warn(char *const argv[]);

#endif
