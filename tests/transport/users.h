/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of the endpoints: their operations, and what they are told, checked at once. */
#ifndef SIM_USERS_H
#define SIM_USERS_H

#include "world.h"

/* An operation of a stream, now. */
void users_op(struct world *w, struct op *op);
/* The core's callback: `user` is what a deferred send was started with. */
void *users_send_pending(void *user);
/* Receives what the first mprobe there has taken. */
void users_mrecv(struct world *w, int ep);
/* Takes the requests that have ended. */
void users_collect(struct world *w, int ep);
/* Has a connection failed? Then requests may. */
bool users_any_broken(const struct world *w);

#endif
