/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * captured.h - the packets of messages, for the option "pcap".
 */
#ifndef SHCA_CAPTURED_H
#define SHCA_CAPTURED_H

#include "fabric/capture.h"
#include "req.h"

/*
 * Writes the packets of a try to send a message of a connected QP, and the responder's packets.
 * With ACK the message is through, and its PSNs are not taken yet. Inside an epoch.
 */
void shca_captured_message(const struct shca_req *req, enum shca_answer answer);
/* Writes the packet of a datagram that was sent. */
void shca_captured_datagram(const struct shca_req *req);

/* Record a message that is through, and a datagram that ended with that status, as the options ask:
 * in the capture, the trace, or both. */
void shca_recorded_message(const struct shca_req *req);
void shca_recorded_datagram(const struct shca_req *req, enum ibv_wc_status status);

#endif
