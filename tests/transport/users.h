/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of the endpoints: they carry out operations, and check the results at once. */
#ifndef SIM_USERS_H
#define SIM_USERS_H

#include "world.h"

/* Carries out an operation of a stream. */
void users_op(struct world *world, struct op *op);
/*
 * Returns the user of a send, whose `user` was given with TQ_SEND_DEFER_USER. The core calls this.
 */
void *users_send_pending(void *user);
/* Notes the result of starting a send. */
void users_started_send(struct world *world, struct op *op, int rc);
/* Receives the message that the first matched probe of the endpoint has taken. */
void users_mrecv(struct world *world, int ep);
/* Releases the requests of the endpoint that have ended. */
void users_collect(struct world *world, int ep);
/* Returns true if a connection has failed, so that requests may fail. */
bool users_any_broken(const struct world *world);

#endif
