/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * captures.h - the capture of a run (softhca run --pcap), made of the captures of its processes
 * (fabric/capture.h).
 */
#ifndef SHCA_CAPTURES_H
#define SHCA_CAPTURES_H

#include "fabric/fabric.h"
#include "parts.h"

/* Writes the file: all packets in the order of their times. Returns 0 or -errno. */
int shca_captures_write(struct shca_parts *parts, const struct shca_fabric *fabric);

#endif
