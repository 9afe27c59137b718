/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrcd.h - XRC domains; the calls themselves are in ops.h.
 */
#ifndef SHCA_XRCD_H
#define SHCA_XRCD_H

/* Forgets which domains this process has open (reset.c). */
void shca_xrcd_reset(void);

#endif
