/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h - what messages of the connection manager carry: private data, reasons, queue keys.
 */
#ifndef SHCA_CM_MESSAGE_H
#define SHCA_CM_MESSAGE_H

#include "cells.h"

/* Bytes of private data in a message: all that it carries is delivered, whatever was sent. */
#define SHCA_MESSAGE_REQ_DATA      92
#define SHCA_MESSAGE_REP_DATA      196
#define SHCA_MESSAGE_REJ_DATA      148
#define SHCA_MESSAGE_SIDR_REQ_DATA 216
#define SHCA_MESSAGE_SIDR_REP_DATA 136
#define SHCA_MESSAGE_IP_HEADER     36 /* of them, in requests to IP addresses */

/* Reasons of a REJ (IBA 12.6.7.2), and a status of a SIDR_REP (12.11.2). */
#define SHCA_REJ_TIMEOUT            4
#define SHCA_REJ_INVALID_SERVICE_ID 8
#define SHCA_REJ_STALE              10 /* the QP is connected already */
#define SHCA_REJ_CONSUMER           28
#define SHCA_REJ_VENDOR_OPTION      35
#define SHCA_SIDR_UNSUPPORTED       1
#define SHCA_SIDR_REJECT            2

/* Queue keys (RDMA_UDP_QKEY of <rdma/rdma_cma.h>; RFC 4391 for the broadcast group). */
#define SHCA_MESSAGE_UDP_QKEY   0x01234567u
#define SHCA_MESSAGE_IPOIB_QKEY 0x00000b1bu

static inline bool shca_message_is_datagram(const struct shca_cm_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

/* Returns when a message that leaves at time `leaves_at` (0: now) has gone the way between the two
 * ends of an identifier's path; 0: at once, as there is no link model. */
uint64_t shca_message_arrives(const struct shca_fabric *fabric, const struct shca_cm_id *id,
			      uint64_t leaves_at);
/* Copies private data, and sets its length to what the message has room for. */
void shca_message_copy_data(uint8_t *to, uint8_t *to_len, const uint8_t *from, uint8_t from_len,
			    uint8_t room);
/* Sets the queue key of an identifier; 0: the one of its port space, unless it has one. Returns 0,
 * or -EINVAL if it has another one. */
int shca_message_set_qkey(struct shca_cm_id *id, uint32_t qkey);
/* Stores an event's details about datagrams: the address vector of the peer. */
void shca_message_fill_ud(struct shca_fabric *fabric, const struct shca_cm_id *id,
			  struct rdma_ucm_ud_param *ud);

#endif
