/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reset.h - starting over in a forked child, whose parent owns all objects.
 */
#ifndef SHCA_RESET_H
#define SHCA_RESET_H

/* Forgets everything that this process had on its fabric. */
void shca_reset(void);

#endif
