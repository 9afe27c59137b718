/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers as the endpoint adds and removes them. */
#ifndef TQ_NET_LINK_PEER_H
#define TQ_NET_LINK_PEER_H

#include "net/adapter/objects.h"

/* Makes the process at the address a peer. `name` is for log texts and must stay valid. Returns 0,
 * -EPROTO (the address isn't valid), -ENETUNREACH, -EEXIST (it is a peer already), -EIO or -ENOMEM.
 */
int tq_link_add(struct tq_net *net, const void *address, size_t len, struct tq_peer *peer,
		const char *name, struct tq_link **link);
/* Returns the peer with that address, or NULL. */
struct tq_peer *tq_link_peer(struct tq_net *net, const void *address, size_t len);
/* Frees the link, with all that is known and kept of its process. */
void tq_link_remove(struct tq_net *net, struct tq_link *link);
/* Frees all links, at the end. */
void tq_links_free(struct tq_net *net);

#endif
