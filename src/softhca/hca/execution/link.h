/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the link model: when a message would have arrived over a real link.
 */
#ifndef SHCA_LINK_H
#define SHCA_LINK_H

#include "hca/process.h"

/* Returns true if the fabric's options ask for the link model. */
static inline bool shca_link_on(void)
{
	return __builtin_expect(shca_self.fabric.hdr->config.link_on != 0, 0);
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
/* Shortens a message of `bytes`, for which shca_link_leave() returned `at_port`, to `sent` bytes:
 * the sender's port is free from there on. Does nothing if another message has been put behind this
 * one. */
void shca_link_give_back(struct shca_hca *from, const struct shca_hca *to, uint64_t at_port,
			 uint64_t bytes, uint64_t sent);
/* Returns the latency of the link, in ns. */
uint64_t shca_link_latency(void);
/* Returns how many bytes have left when the NAK to a first packet of `mtu` bytes is back, and the
 * sender stops. */
uint64_t shca_link_until_nak(const struct shca_hca *from, const struct shca_hca *to, uint64_t mtu);

#endif
