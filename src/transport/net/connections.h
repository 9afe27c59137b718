/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections as a whole: opening, polling, closing. */
#ifndef TQ_NET_CONNECTIONS_H
#define TQ_NET_CONNECTIONS_H

#include "net/objects.h"

int tq_connections_open(struct tq_net *net);
void tq_connections_close(struct tq_net *net);
/* Returns the address as published. */
const void *tq_connections_address(struct tq_net *net, size_t *len);

/* Retransmits, and handles timeouts. Returns the number of events. *next: ns until this is to be
 * called again (UINT64_MAX: no need). */
int tq_connections_poll(struct tq_net *net, uint64_t *next);
/* Logs what has failed, and tells the protocol. Returns how many links it was. Part of
 * tq_connections_poll(); to be called before the user hears of it in another way. */
int tq_connections_report(struct tq_net *net);
/* Returns true if all that has failed is reported. Else the user must not hear of a failure yet:
 * why a connection failed is being inquired, for a quarter of a second at most. */
bool tq_connections_settled(const struct tq_net *net);
/* Fails all connections, with all that is under way: net->broken_reason says why. */
void tq_connections_break(struct tq_net *net);

#endif
