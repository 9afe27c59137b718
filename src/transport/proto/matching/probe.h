/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: for ep/. Results are as in tupleq.h. */
#ifndef TQ_PROTO_PROBE_H
#define TQ_PROTO_PROBE_H

#include "proto/common/rx_objects.h"

int tq_core_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status);
int tq_core_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
		   struct tq_msg **msg);
int tq_core_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
		  struct tq_status *status);
/* Keeps the messages of a pair that goes which matched probes have taken, for tq_core_mrecv(). */
void tq_probe_forget_pair(struct tq_pair *pair);
struct tq_core *tq_core_of_msg(const struct tq_msg *msg);

#endif
