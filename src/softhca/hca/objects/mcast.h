/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mcast.h - which UD QPs belong to which multicast groups: the fabric's table of memberships.
 * Written under the fabric's control lock; UD senders read it without one.
 */
#ifndef SHCA_MCAST_H
#define SHCA_MCAST_H

#include "fabric/fabric.h"

static inline bool shca_gid_is_multicast(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff;
}

/* 0 (also when it is a member already), or -ENOMEM when the table or the limit is full. */
int shca_mcast_join(struct shca_fabric *f, unsigned hca, uint32_t qpn, const union ibv_gid *gid);
/* 0, or -EINVAL when it is no member. */
int shca_mcast_leave(struct shca_fabric *f, unsigned hca, uint32_t qpn, const union ibv_gid *gid);
/* Is the QP in any group? Such a QP can't be destroyed (EBUSY, as the kernel has it). */
bool shca_mcast_member(struct shca_fabric *f, unsigned hca, uint32_t qpn);
/* Takes it out of all of them. */
void shca_mcast_leave_all(struct shca_fabric *f, unsigned hca, uint32_t qpn);

#endif
