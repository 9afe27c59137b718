/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reap.h - freeing what is left of processes that ended, or that replaced their program.
 *
 * Call neither function inside an epoch, nor with a lock of the fabric held.
 */
#ifndef SHCA_REAP_H
#define SHCA_REAP_H

#include "fabric.h"

/* Frees everything of a process that no longer runs: objects, references, multicast memberships,
 * FIFOs, the arena, the slot. Does nothing if the process runs. Any process may call this, several
 * at a time too; if one of them dies here, another one goes on. */
void shca_reap(struct shca_fabric *fabric, unsigned proc);
/* Reaps each process that has ended. The monitor calls this, and a process that waits for a peer.
 */
void shca_reap_all(struct shca_fabric *fabric);

/* Ends the connections that a process made by librdmacm; the connection manager sets it. Called
 * with the fabric's ctl_lock, and may be repeated from any point. May be NULL. */
extern void (*shca_reap_connections)(struct shca_fabric *fabric, unsigned proc);

#endif
