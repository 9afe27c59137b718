/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.h - the packets that a process has its adapters send, as a capture in a file of its own,
 * for the option "pcap" (recording.h, cmd/captures.c). The process of a requester writes the
 * responder's packets, too. Each packet is one write(), so that the file of a killed process holds
 * all packets before its death. The packets are not sorted by time.
 */
#ifndef SHCA_CAPTURE_H
#define SHCA_CAPTURE_H

#include "recording.h"

/* Starts the capture of the process in that slot, if the fabric's options ask for it. Failures are
 * told on the standard error output; the process goes on without. */
void shca_capture_start(const struct shca_fabric *fabric, unsigned slot);
void shca_capture_stop(void);
/* Forgets the parent's capture in a forked child. */
void shca_capture_reset(void);

/* Keep other threads from writing between the packets of a message. shca_capture_lock() returns a
 * value for shca_capture_unlock(). */
int shca_capture_lock(void);
void shca_capture_unlock(int cancel);
/* Writes a packet that an HCA sends at that time (of shca_now()). Needs the lock. */
void shca_capture_add(unsigned hca, uint64_t time, const void *packet, uint32_t bytes);

#endif
