/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h - the life of identifiers and channels, and what is left of a process that ended.
 */
#ifndef SHCA_CM_LIFE_H
#define SHCA_CM_LIFE_H

#include "cells.h"

/* Makes an identifier. Returns its index or -errno. */
int64_t shca_life_create(struct shca_fabric *fabric, uint32_t channel,
			 const struct rdma_ucm_create_id *cmd);
/* Destroys an identifier, with its events. Returns how many events the program has got of it. */
uint32_t shca_life_destroy(struct shca_fabric *fabric, struct shca_cm_id *id);
/* Moves an identifier, with its events, to another channel of its process. Returns how many events
 * the program has got of it. */
uint32_t shca_life_migrate(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t channel);
/* Ends a membership. Returns how many events the program has got of it. */
uint32_t shca_life_leave(struct shca_fabric *fabric, struct shca_cm_group *group);

/* The next functions take the lock. */

/* Closes a channel of the calling process, and destroys its identifiers. */
void shca_life_close(struct shca_fabric *fabric, uint32_t channel);
/* Serves the deadlines of the calling process that have passed, and shows it the messages that have
 * arrived. */
void shca_life_serve(struct shca_fabric *fabric, unsigned proc);
/* Has the reaper end the connections of dead processes. */
void shca_life_watch(void);

#endif
