/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_make.h - between qp_create.c, qp_modify.c and qp.c.
 */
#ifndef SHCA_QP_MAKE_H
#define SHCA_QP_MAKE_H

#include "hca/queues/qp.h"

/* Makes the object known by its table index (several handles of one target QP may be). 0 or
 * -ENOMEM. */
int shca_qp_add_handle(struct shca_qp *qp);
/* Drops references to PD, CQs, SRQ and domain, and frees the private struct. */
void shca_qp_release(struct shca_qp *qp);
/* Drops its completions from its CQs. Nothing of it is in flight. */
void shca_qp_purge(struct shca_qp *qp);
/* Keeps the engine from flushing it from here on: its queues are about to be emptied or freed. */
void shca_qp_no_flush(struct shca_qp *qp);
/* Gives a receive that a message held when it was broken off back to the SRQ. Nothing is in flight.
 */
void shca_qp_drop_held(struct shca_qp *qp);
/* A forked child starts anew (reset.c). */
void shca_qp_reset(void);

#endif
