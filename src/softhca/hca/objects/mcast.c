/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mcast.c - joining and leaving multicast groups.
 */
#include "mcast.h"

#include <errno.h>
#include <string.h>

static bool is_member(struct shca_mcast *mcast, unsigned hca, uint32_t qpn)
{
	return atomic_load_explicit(&mcast->qpn, memory_order_relaxed) == qpn &&
	       atomic_load_explicit(&mcast->hca, memory_order_relaxed) == hca;
}

/* Returns the membership, or NULL. Needs the control lock. */
static struct shca_mcast *find(struct shca_fabric *fabric, unsigned hca, uint32_t qpn,
			       const union ibv_gid *gid)
{
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *mcast = &fabric->hdr->mcast[i];

		if (is_member(mcast, hca, qpn) && memcmp(&mcast->gid, gid, sizeof(*gid)) == 0)
			return mcast;
	}
	return NULL;
}

/* Returns a free entry, or NULL if `max-mcast` memberships exist. Needs the control lock. */
static struct shca_mcast *find_free(struct shca_fabric *fabric)
{
	struct shca_mcast *free_entry = NULL;
	int64_t used = 0;

	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *mcast = &fabric->hdr->mcast[i];

		if (atomic_load_explicit(&mcast->qpn, memory_order_relaxed) != 0)
			used++;
		else if (!free_entry)
			free_entry = mcast;
	}
	return used < shca_opt(fabric, SHCA_O_MAX_MCAST) ? free_entry : NULL;
}

int shca_mcast_join(struct shca_fabric *fabric, unsigned hca, uint32_t qpn,
		    const union ibv_gid *gid)
{
	struct shca_mcast *mcast;
	int ret = 0;

	shca_lock(&fabric->hdr->ctl_lock);
	if (find(fabric, hca, qpn, gid))
		goto out;
	mcast = find_free(fabric);
	if (!mcast) {
		ret = -ENOMEM;
		goto out;
	}
	mcast->gid = *gid;
	atomic_store_explicit(&mcast->hca, hca, memory_order_relaxed);
	/* release: a sender that sees the QPN sees the group too. */
	atomic_store_explicit(&mcast->qpn, qpn, memory_order_release);
out:
	shca_unlock(&fabric->hdr->ctl_lock);
	return ret;
}

int shca_mcast_leave(struct shca_fabric *fabric, unsigned hca, uint32_t qpn,
		     const union ibv_gid *gid)
{
	struct shca_mcast *mcast;

	shca_lock(&fabric->hdr->ctl_lock);
	mcast = find(fabric, hca, qpn, gid);
	if (mcast)
		atomic_store_explicit(&mcast->qpn, 0, memory_order_release);
	shca_unlock(&fabric->hdr->ctl_lock);
	return mcast ? 0 : -EINVAL;
}

bool shca_mcast_is_member(struct shca_fabric *fabric, unsigned hca, uint32_t qpn)
{
	bool member = false;

	shca_lock(&fabric->hdr->ctl_lock);
	for (unsigned i = 0; i < SHCA_MAX_MCAST && !member; i++)
		member = is_member(&fabric->hdr->mcast[i], hca, qpn);
	shca_unlock(&fabric->hdr->ctl_lock);
	return member;
}

void shca_mcast_leave_all(struct shca_fabric *fabric, unsigned hca, uint32_t qpn)
{
	shca_lock(&fabric->hdr->ctl_lock);
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++)
		if (is_member(&fabric->hdr->mcast[i], hca, qpn))
			atomic_store_explicit(&fabric->hdr->mcast[i].qpn, 0, memory_order_release);
	shca_unlock(&fabric->hdr->ctl_lock);
}
