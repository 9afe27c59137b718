/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuple queues: an XRC SRQ each, with the receives that lie in it, and the pool of idle ones.
 */
#ifndef TQ_NET_SRQ_H
#define TQ_NET_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "net/adapter/address.h"
#include "proto/common/net_ops.h"

struct tq_net;

int tq_srqs_open(struct tq_net *net);
void tq_srqs_close(struct tq_net *net);

/* Makes an XRC SRQ on rcq: a tuple's, or one of the control channel. */
int tq_srq_make(struct tq_net *net, uint32_t depth, uint32_t sges, struct ibv_srq **srq,
		uint32_t *srqn);

/* The operations of struct tq_net_ops. */
struct tq_srq *tq_srq_get(struct tq_net *net, uint32_t *srqn);
int tq_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		void *token);
void tq_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe);

/* Destroys the queues that were withdrawn; to be called when the receive CQ has been polled empty.
 * Returns the number of completions that were handled. */
int tq_srqs_poll(struct tq_net *net);
/* Returns true if queues are withdrawn and not destroyed: the HCA may still write into the buffers
 * of their receives. */
bool tq_srqs_has_withdrawn(const struct tq_net *net);

#endif
