/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the memory of processes of the node (process_vm_readv). */
#ifndef TQ_NET_PEER_MEMORY_H
#define TQ_NET_PEER_MEMORY_H

#include "net/peers/link.h"

/* Finds out on first use whether this process may read the memory of the link's process. Returns
 * true if it may. */
bool tq_peer_memory_try(struct tq_net *net, struct tq_link *link);
/* Copies `len` bytes at `addr` in the memory of the link's process. Returns 0 if the link had not
 * failed at the other end when they were copied, or -EIO if nothing can be said of them. */
int tq_peer_memory_copy(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr,
			uint64_t len);

#endif
