/* SPDX-License-Identifier: BSD-3-Clause */
/* Small writes into peers' memory, on the control lane. */
#ifndef TQ_NET_PUT_H
#define TQ_NET_PUT_H

#include "net/adapter/objects.h"

/* Writes, or keeps a copy of the data until they can go. Returns 0, -EIO if the link has failed,
 * -ENOMEM, or -EAGAIN if too many puts wait for the link. */
int tq_put_start(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		 uint64_t addr, uint32_t key);
/* Posts waiting puts that can go. Returns the number of events. */
int tq_put_poll(struct tq_net *net);
/* Drops the puts that wait for the link, which goes. */
void tq_put_forget(struct tq_net *net, struct tq_link *link);

#endif
