/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - whether the processes of a job are busy in the real world, for which a virtual clock
 * waits.
 */
#ifndef SHCA_WORLD_H
#define SHCA_WORLD_H

#include "fabric/fabric.h"

/* Starts a thread of the monitor that answers shca_clock.world_asked as long as the monitor
 * lives. Returns 0 or -errno. */
int shca_world_start(struct shca_fabric *fabric);
/* Returns true if all threads of the job sleep now, also those that wait for their turns, but for
 * those that compute beside the others. Only one thread of the monitor may call this. */
bool shca_world_sleeps(struct shca_fabric *fabric);

#endif
