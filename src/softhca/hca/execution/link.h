/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the link model: when would this message have arrived over a real link?
 */
#ifndef SHCA_LINK_H
#define SHCA_LINK_H

#include "hca/objects.h"

static inline bool shca_link_on(void)
{
	return __builtin_expect(shca_self.fabric.hdr->config.link_on != 0, 0);
}

/*
 * Reserves both ports for a message of `bytes` that leaves `from` at time `start` at the earliest.
 * When its last byte is at `to`; *first: when its first one is. Times in ns.
 */
uint64_t shca_link_send(struct shca_hca *from, struct shca_hca *to, uint64_t bytes, uint64_t start,
			uint64_t *first);
/* The two halves of it: when the first byte can be at a receiver, and from that (*first, which the
 * receiver's port may put off) when the last one is. */
uint64_t shca_link_leave(struct shca_hca *from, uint64_t bytes, uint64_t start);
uint64_t shca_link_arrive(struct shca_hca *to, uint64_t bytes, uint64_t *first);
uint64_t shca_link_latency(void);
/* Bytes that have left when the NAK to a first packet of `mtu` bytes is back: the sender stops
 * then. */
uint64_t shca_link_until_nak(uint64_t mtu);

#endif
