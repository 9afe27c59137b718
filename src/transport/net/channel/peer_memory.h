/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers' memory: reading that of processes of the node (process_vm_readv), and small writes. */
#ifndef TQ_NET_PEER_MEMORY_H
#define TQ_NET_PEER_MEMORY_H

#include "net/adapter/objects.h"
#include "net/peers/link.h"

/* Finds out on first use whether this process may read the memory of the link's process. Returns
 * true if it may. */
bool tq_peer_memory_try(struct tq_net *net, struct tq_link *link);
/* Copies `len` bytes at `addr` in the memory of the link's process. Returns 0 if the link had not
 * failed at the other end when they were copied, or -EIO if nothing can be said of them. */
int tq_peer_memory_copy(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr,
			uint64_t len);

/* ---- small writes into peers' memory, on the control lane ---- */

/* Writes, or keeps a copy of the data until they can go. Returns 0, -EIO if the link has failed,
 * -ENOMEM, or -EAGAIN if too many puts wait for the link. */
int tq_put_start(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		 uint64_t addr, uint32_t key);
/* Posts waiting puts that can go. Returns the number of events. */
int tq_put_poll(struct tq_net *net);
/* Drops the puts that wait for the link, which goes. */
void tq_put_forget(struct tq_net *net, struct tq_link *link);

#endif
