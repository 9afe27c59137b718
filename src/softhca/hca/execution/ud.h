/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.h - datagrams.
 */
#ifndef SHCA_UD_H
#define SHCA_UD_H

#include "hca/queues/queue_pair.h"

/* Sends a datagram. Returns SUCCESS whatever becomes of it, or the local error. Under the link
 * model *when may be set: then the datagram was not sent, and the caller tries again at that time.
 * Inside an epoch. */
enum ibv_wc_status shca_ud_send(struct shca_qp *qp, struct shca_swqe *wqe,
				const struct shca_run *src, uint64_t *when);

/* Returns the Q_Key that a datagram has. One with the top bit stands for the QP's own (IBA 10.2.5).
 */
static inline uint32_t shca_ud_qkey(const struct shca_qp *qp, const struct shca_swqe *wqe)
{
	return wqe->ud.qkey & 0x80000000u ? qp->entry->qkey : wqe->ud.qkey;
}

#endif
