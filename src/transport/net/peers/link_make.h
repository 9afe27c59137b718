/* SPDX-License-Identifier: BSD-3-Clause */
/* Links are made when a process is added as a peer, or asks for a connection before that. */
#ifndef TQ_NET_LINK_MAKE_H
#define TQ_NET_LINK_MAKE_H

#include "net/adapter/address.h"
#include "net/adapter/objects.h"

/* Makes a link to the process at the address, which has none yet. Returns 0, -EIO if the network is
 * broken, or -ENOMEM. */
int tq_link_make(struct tq_net *net, const struct tq_address *address, struct tq_link **made);
/* Makes the link of a process that asked before it was a peer. NULL: the address is invalid, or
 * there are too many such processes. */
struct tq_link *tq_link_make_unnamed(struct tq_net *net, const struct tq_address *address);

#endif
