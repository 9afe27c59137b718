/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadline.h - when messages of the connection manager are sent again, or given up.
 */
#ifndef SHCA_CM_DEADLINE_H
#define SHCA_CM_DEADLINE_H

#include "cells.h"

/* Times (ms), as Linux's connection manager has them: it rounds 4.096 us to 1 / 256 ms. A request
 * or an answer that has no answer is sent again after RESEND, and, once the peer has said that it
 * has the message but needs time (MRA), after MRA. */
#define SHCA_DEADLINE_RESEND   6144u
#define SHCA_DEADLINE_MRA      67584u
#define SHCA_DEADLINE_SIDR     4096u
#define SHCA_DEADLINE_TIMEWAIT 2048u
#define SHCA_DEADLINE_RETRIES  15

/* Returns the fabric's time (ns), also in a process without a clock. */
uint64_t shca_deadline_now(const struct shca_fabric *fabric);
/* Makes the engine of a process look at what is due at that time (ns). */
void shca_deadline_announce(struct shca_fabric *fabric, unsigned proc, uint64_t when);
/* Sets when the process of an identifier looks at it: `ms` after `from`; 0: from now on. */
void shca_deadline_set(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t from,
		       uint64_t ms);
/* Stores when a process has to look again, which has passed all deadlines up to now: at the first
 * deadline, or at `first`, unless that is 0. */
void shca_deadline_renew(struct shca_fabric *fabric, unsigned proc, uint64_t first);

#endif
