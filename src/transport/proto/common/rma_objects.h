/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on peers' memory. They are neither the sender's nor the receiver's. */
#ifndef TQ_PROTO_RMA_OBJECTS_H
#define TQ_PROTO_RMA_OBJECTS_H

#include "proto/common/objects.h"

struct tq_rma_req {
	struct tq_req req;
	struct tq_peer *peer;
	enum tq_rma_kind kind;
	struct tq_sg sg; /* local memory; reg NULL: inline */
	bool owns_reg;   /* sg.reg was made by the library for this operation, with `cookie` */
	void *cookie;    /* for tq_net_ops.unregister() */
	void (*done)(void *user, int error);
};

#endif
