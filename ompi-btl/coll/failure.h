/* SPDX-License-Identifier: BSD-3-Clause */
/* The failure of a communicator: of a process, or because processes are in different operations. */
#ifndef TUPLEQ_COLL_FAILURE_H
#define TUPLEQ_COLL_FAILURE_H

#include "coll.h"

/* Ends all operations under way, and each later one, with the error `why`: -EIO or -EPROTO. Called
 * with the lock held. */
void mca_coll_tupleq_fail(struct mca_coll_tupleq_module *module, int why);
/* Reports on stderr that another process has another operation under `number`, and fails the
 * communicator for that. Called with the lock held. */
void mca_coll_tupleq_fail_mismatched(struct mca_coll_tupleq_module *module, uint64_t number);
/* Fails the communicator if another process has announced its failure. Returns true if it has
 * failed. Called with the lock held, in state READY. */
bool mca_coll_tupleq_poll_failure(struct mca_coll_tupleq_module *module);

#endif
