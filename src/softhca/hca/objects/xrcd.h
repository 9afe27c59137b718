/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrcd.h - XRC domains as this process has them open; fabric/xrc_life.h has the domains themselves.
 */
#ifndef SHCA_XRCD_H
#define SHCA_XRCD_H

#include "hca/domains.h"

/* Implement the libibverbs calls of the same names. */
struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int shca_close_xrcd(struct ibv_xrcd *xrcd);
/* Closes a domain; the struct stays. */
void shca_xrcd_end(struct shca_xrcd *xrcd);
/* Gives up the file of a domain that a forked child's parent opened. */
void shca_xrcd_close_file(struct shca_xrcd *xrcd);
/* Forgets which domains this process has open, in a forked child. */
void shca_xrcd_reset(void);

#endif
