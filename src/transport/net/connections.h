/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections as a whole: opening, polling, closing. */
#ifndef TQ_NET_CONNECTIONS_H
#define TQ_NET_CONNECTIONS_H

#include "net/adapter/objects.h"

int tq_connections_open(struct tq_net *net);
void tq_connections_close(struct tq_net *net);
/* Returns the address as published. */
const void *tq_connections_address(struct tq_net *net, size_t *len);

/* Fires timers, reports what has failed, and frees what has ended. Returns the number of events. */
int tq_connections_poll(struct tq_net *net);
/* Returns the ns until tq_connections_poll() is to be called; UINT64_MAX: no need. The one place
 * that says when the network wants to be called besides for completions. */
uint64_t tq_connections_next(const struct tq_net *net);
/* Reports the links that have failed: logs why, and tells the protocol. Returns their number. Part
 * of tq_connections_poll(); to be called before the user hears of a failure in another way. */
int tq_connections_report(struct tq_net *net);
/* Returns true if all that has failed is reported. Else the user must not hear of a failure yet:
 * whether a process has died is still being found out, for a quarter of a second at most. */
static inline bool tq_connections_are_settled(const struct tq_net *net)
{
	tq_assert_held(net->lock);
	return !net->connections->failing && !net->connections->broken;
}
/* Fails all connections, with all that is under way: net->broken_reason says why. */
void tq_connections_break(struct tq_net *net);

#endif
