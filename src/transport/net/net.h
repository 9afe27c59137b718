/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of an endpoint: opening, polling, closing. */
#ifndef TQ_NET_NET_H
#define TQ_NET_NET_H

#include "net/adapter/objects.h"
#include "proto/common/net_ops.h"

/* The network as the protocol sees it. */
extern const struct tq_net_ops tq_net_ops;

/* Opens the network. lock, core, params, job, cache and stats are set; all else is made here. */
int tq_net_open(struct tq_net *net);
/* Closes the network. This and tq_net_open() need no lock, as nobody else has the network. */
void tq_net_close(struct tq_net *net);
/* Handles at most `budget` completions, and messages in rings. Returns the number of events. */
int tq_net_events(struct tq_net *net, int budget);
/* Handles the same, but messages in rings first, and mostly no completions if there were messages:
 * a look at the adapter's queues takes longer than such a message. */
int tq_net_events_soon(struct tq_net *net, int budget);
/* Polls once: tq_net_events(), then tq_net_work(). Returns the number of events. */
int tq_net_poll(struct tq_net *net, int budget);
/* Carries out the work that is due besides completions. Returns the number of events. */
int tq_net_work(struct tq_net *net);

#endif
