/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups: processes are asked for their addresses, by datagrams to (port, UD QP). */
#ifndef TQ_NET_LOOK_UP_H
#define TQ_NET_LOOK_UP_H

#include <tupleq/look_up.h>

#include "net/adapter/objects.h"
#include "net/peers/oob.h"

/* The result of a look-up, or a process that has made itself known. */
struct tq_look_up_result {
	struct tq_locator locator;
	int error; /* 0 or -errno; then there is no address */
	struct tq_address address;
	struct tq_look_up_result *next;
};

/* Gives the locator of an address. Returns 0, or -ENOTSUP for a RoCE address that isn't IPv4. */
int tq_look_up_locator(const struct tq_address *address, struct tq_locator *locator);
/* Lets other processes ask this one. */
void tq_look_up_enable(struct tq_net *net);
/* Starts a look-up, unless one of that locator is under way. Returns 0, -EINVAL if there can be no
 * such process, -ENOTSUP if this one has no locator, or -ENOMEM. */
int tq_look_up_start(struct tq_net *net, const struct tq_locator *locator);
/* Handles a question (TQ_OOB_LOOK_UP) or an answer (TQ_OOB_LOOKED_UP). */
void tq_look_up_on_datagram(struct tq_net *net, const struct tq_oob_look_up *datagram);
/* Adds a result for a process that has asked for this one, or for a connection to it, unless it is
 * a peer. */
void tq_look_up_add_unnamed(struct tq_net *net, const struct tq_address *address);
/* Returns the list of results since the last call, the oldest first. The caller frees them. */
struct tq_look_up_result *tq_look_up_results(struct tq_net *net);
void tq_look_up_close(struct tq_net *net);

#endif
