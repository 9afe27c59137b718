/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle_near.h - whether one process of the job is quiet, found out without the launcher's
 * monitor.
 */
#ifndef SHCA_SETTLE_NEAR_H
#define SHCA_SETTLE_NEAR_H

#include "clock.h"

/* Waits for a moment until the threads of the disturbed process (shca_clock.world_process) sleep
 * that have no turn to wait for. Returns false if they don't, or if other processes may be busy as
 * well: the monitor has to be asked then. The caller has the turn. */
bool shca_settle_near(struct shca_clock *clock);

#endif
