/* SPDX-License-Identifier: BSD-3-Clause */
/* The bulk lane of a node: RDMA of rendezvous, and direct sends whose receive is certain. */
#ifndef TQ_NET_RDMA_H
#define TQ_NET_RDMA_H

#include "net/adapter/objects.h"

int tq_rdma_open(struct tq_net *net);
void tq_rdma_close(struct tq_net *net);
/* Starts a read or a write: operations of struct tq_net_ops. */
int tq_rdma_start(struct tq_net *net, struct tq_link *link, enum ibv_wr_opcode opcode,
		  const struct tq_sg *sg, int nsg, uint64_t addr, uint32_t rkey, void *token);
/* Starts an atomic operation on 8 bytes. */
int tq_rdma_atomic(struct tq_net *net, struct tq_link *link, const struct tq_atomic *atomic,
		   const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token);
/* Starts a direct send, with TQ_DIRECT_BULK. */
int tq_rdma_direct(struct tq_net *net, struct tq_link *link, uint32_t srqn, const struct tq_sg *sg,
		   int nsg, unsigned flags, void *token);
/* Posts waiting operations that can go, and reports failed ones. Returns the number of events. */
int tq_rdma_poll(struct tq_net *net);
/* Drops the operations for the link, which goes. */
void tq_rdma_forget(struct tq_net *net, struct tq_link *link);
/* Returns true if nothing is queued or under way. */
bool tq_rdma_is_idle(const struct tq_net *net);

#endif
