/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mcast.h - which UD QPs belong to which multicast groups: the fabric's table of memberships.
 * Written under the fabric's control lock; UD senders read the table without a lock.
 */
#ifndef SHCA_MCAST_H
#define SHCA_MCAST_H

#include "fabric/fabric.h"

/* Adds a QP to a group. Returns 0, also for a member, or -ENOMEM if the table is full or max-mcast
 * is reached. */
int shca_mcast_join(struct shca_fabric *fabric, unsigned hca, uint32_t qpn,
		    const union ibv_gid *gid);
/* Removes a QP from a group. Returns 0, or -EINVAL if the QP is no member. */
int shca_mcast_leave(struct shca_fabric *fabric, unsigned hca, uint32_t qpn,
		     const union ibv_gid *gid);
/* Returns true if the QP is in any group. A member can't be destroyed (EBUSY, as in the kernel). */
bool shca_mcast_is_member(struct shca_fabric *fabric, unsigned hca, uint32_t qpn);
/* Removes a QP from all groups. */
void shca_mcast_leave_all(struct shca_fabric *fabric, unsigned hca, uint32_t qpn);

#endif
