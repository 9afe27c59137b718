/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups: processes are asked for their addresses, by datagrams to (port, UD QP). */
#ifndef TQ_NET_LOOK_UP_H
#define TQ_NET_LOOK_UP_H

#include <tupleq/look_up.h>

#include "net/datagram.h"
#include "net/objects.h"

/* The result of a look-up, or a process that has made itself known. */
struct tq_look_up_result {
	struct tq_locator locator;
	int error;
	struct tq_address address;
	struct tq_look_up_result *next;
};

/* Returns the locator of an address; -ENOTSUP. */
int tq_address_locator(const struct tq_address *address, struct tq_locator *locator);
/* Lets other processes ask this one. */
void tq_look_up_enable(struct tq_net *net);
int tq_look_up_start(struct tq_net *net, const struct tq_locator *locator);
/* Handles a question (TQ_OOB_LOOK_UP) or an answer (TQ_OOB_LOOKED_UP). */
void tq_on_look_up(struct tq_net *net, const struct tq_oob_look_up *datagram);
/* Takes note of a process that is no peer. */
void tq_look_up_unnamed(struct tq_net *net, const struct tq_address *address);
/* Returns the list of results since the last call, the oldest first. The caller frees them. */
struct tq_look_up_result *tq_look_up_results(struct tq_net *net);
void tq_look_up_close(struct tq_net *net);

#endif
