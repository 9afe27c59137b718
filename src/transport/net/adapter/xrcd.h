/* SPDX-License-Identifier: BSD-3-Clause */
/* The XRC domain that the job's processes on this node share. */
#ifndef TQ_NET_XRCD_H
#define TQ_NET_XRCD_H

#include <stdint.h>

struct tq_net;

/* Opens the domain. Called after the device is open, before SRQs are made. Returns 0, or -errno
 * after the log has said why. */
int tq_xrcd_open(struct tq_net *net);
/* Closes the domain, and removes its file if no other process uses it. */
void tq_xrcd_close(struct tq_net *net);

/* Marks this process in the domain's file, by the nonce of its endpoint. The mark goes when the
 * process ends, or closes the domain. */
void tq_xrcd_mark(const struct tq_net *net, uint64_t nonce);
/* Returns 1 if another endpoint has marked itself by that nonce in the file, 0 if none has; -errno:
 * the file system doesn't say. */
int tq_xrcd_has_mark(const struct tq_net *net, uint64_t nonce);

#endif
