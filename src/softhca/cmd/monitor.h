/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * monitor.h - the process that watches a fabric's processes, and outlives a launcher that is
 * killed.
 */
#ifndef SHCA_MONITOR_H
#define SHCA_MONITOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "fabric/fabric.h"

/* Open files that a monitor needs: one for each process slot, and some more. */
#define SHCA_MONITOR_FILES (SHCA_MAX_PROCS + 64u)
/* Returns true if the limit of open files lets a monitor watch all processes of a fabric. */
bool shca_monitor_can_watch(void);

/*
 * Starts the monitor of the fabric as a child. The monitor reads the slots of attaching processes
 * from `fifo` and reaps processes that end. When the last writer of the pipe `alive` has gone, it
 * removes the fabric and ends. Returns its pid, or -errno.
 */
pid_t shca_monitor_start(struct shca_fabric *fabric, int fifo, const int alive[2]);

#endif
