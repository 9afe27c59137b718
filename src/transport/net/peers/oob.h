/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between processes, out of band, on a UD QP (datagram.h is their format). They get lost,
 * doubled and reordered: a process that wants an answer asks again (request.c), and one that
 * has answered gives the same answer again (target.c).
 */
#ifndef TQ_NET_OOB_H
#define TQ_NET_OOB_H

#include "base/clock.h"
#include "net/adapter/objects.h"
#include "net/peers/datagram.h"

/* The longest time (ns) between two sendings of a datagram that is repeated. */
#define TQ_OOB_MAX_BACKOFF (320 * TQ_MS)

/* Handles a datagram, which is whole and for this endpoint. */
typedef void tq_oob_handler(struct tq_net *net, const struct tq_oob_hdr *datagram);

int tq_oob_open(struct tq_net *net, uint64_t nonce, tq_oob_handler *handler);
void tq_oob_close(struct tq_net *net);
/* Gives the number and the key of the UD QP, for the address. */
void tq_oob_names(const struct tq_net *net, uint32_t *qpn, uint32_t *qkey);

/* Returns the header of a datagram to `link`, with the rest of it zero. */
struct tq_oob_hdr tq_oob_hdr(const struct tq_net *net, const struct tq_link *link,
			     enum tq_oob_type type, uint64_t txid);
/* Returns the header of a datagram to a process whose nonce isn't known. */
struct tq_oob_hdr tq_oob_stranger(const struct tq_net *net, enum tq_oob_type type);
/* Sends a datagram once, which may get lost. Returns false if too many are under way to send this
 * one. True says nothing of its arrival: a datagram that can't be posted counts as lost. */
bool tq_oob_send(struct tq_net *net, const struct tq_link *link, const void *datagram, size_t len);
/* Sends a datagram to a UD QP, as tq_oob_send() does. */
bool tq_oob_send_to(struct tq_net *net, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		    const void *datagram, size_t len);
/* Wakes the link's process, if its service thread sleeps, so that it looks at its inbox and its
 * outboxes. */
void tq_oob_wake(struct tq_net *net, const struct tq_link *link);
/* Returns the time (ns) after which a datagram is repeated again that was repeated after `backoff`.
 */
static inline uint64_t tq_oob_next_backoff(uint64_t backoff)
{
	return backoff < TQ_OOB_MAX_BACKOFF / 2 ? 2 * backoff : TQ_OOB_MAX_BACKOFF;
}
/* Returns true if no datagram is under way from here, or the network is broken. */
bool tq_oob_is_idle(const struct tq_net *net);

#endif
