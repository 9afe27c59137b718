/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mcast.c - multicast groups of UD QPs. No subnet manager assigns LIDs to groups, so any LID is
 * accepted; the GID names the group.
 */
#include "verbs.h"

#include <errno.h>

#include "clock/clock.h"
#include "hca/objects/mcast.h"

static int check(const struct ibv_qp *qp, const union ibv_gid *gid)
{
	if (!shca_ours(qp->context))
		return EIO;
	if (qp->qp_type != IBV_QPT_UD || !shca_gid_is_multicast(gid))
		return EINVAL;
	return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	SHCA_CLOCKED(VERB, 1);
	int ret = check(qp, gid);

	(void)lid;
	if (ret)
		return ret;
	return -shca_mcast_join(&shca_self.fabric, shca_ctx(qp->context)->hca_idx, qp->qp_num, gid);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	SHCA_CLOCKED(VERB, 1);
	int ret = check(qp, gid);

	(void)lid;
	if (ret)
		return ret;
	return -shca_mcast_leave(&shca_self.fabric, shca_ctx(qp->context)->hca_idx, qp->qp_num,
				 gid);
}
