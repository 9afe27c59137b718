/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the link model: when a message would have arrived over a real link.
 */
#ifndef SHCA_LINK_H
#define SHCA_LINK_H

#include "hca/queues/queue_pair.h"

/* Returns true if the fabric's options ask for the link model. */
static inline bool shca_link_on(void)
{
	return __builtin_expect(shca_self.fabric.hdr->config.link_on != 0, 0);
}

/* Returns when a message leaves at the earliest, under the link model. A busy port sends one
 * message after the other, however late the next one is looked at. */
static inline uint64_t shca_link_departs_at(const struct shca_qp *qp, const struct shca_swqe *wqe)
{
	return wqe->posted_at > qp->link_floor ? wqe->posted_at : qp->link_floor;
}
/*
 * Reserves both ports for a message of `bytes` that leaves `from` at time `start` at the earliest.
 * Returns when the last byte is at `to`, and stores in *first when the first byte is. Times in ns.
 */
uint64_t shca_link_send(struct shca_hca *from, struct shca_hca *to, uint64_t bytes, uint64_t start,
			uint64_t *first);
/* Reserves the sender's port: the first half of shca_link_send(). `to`: NULL for a multicast group.
 * Returns when the first byte can be at a receiver. */
uint64_t shca_link_leave(struct shca_hca *from, const struct shca_hca *to, uint64_t bytes,
			 uint64_t start);
/* Reserves the receiver's port from *first on, the second half; a busy port puts *first off.
 * Returns when the last byte is there. */
uint64_t shca_link_arrive(const struct shca_hca *from, struct shca_hca *to, uint64_t bytes,
			  uint64_t *first);
/*
 * A message that finds no receive takes the port only until its NAK is back. While the port is busy
 * with others it isn't known yet how long that message will take: the port is *open* until then,
 * and what is sent behind the message waits.
 *
 * Return true if a message has to wait until *until: shca_link_is_open() because the port is open,
 * shca_link_opens() because the port is busy. The latter opens the port for a message that has no
 * receive so far, and would leave at `start` at the earliest.
 */
bool shca_link_is_open(const struct shca_hca *from, uint64_t *until);
bool shca_link_opens(struct shca_hca *from, uint64_t start, uint64_t *until);
/* Returns the latency of the link, in ns. */
uint64_t shca_link_latency(void);
/* Returns how many bytes have left when the NAK to a first packet of `mtu` bytes is back, and the
 * sender stops. */
uint64_t shca_link_until_nak(const struct shca_hca *from, const struct shca_hca *to, uint64_t mtu);

#endif
