/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mcast.c - joining and leaving multicast groups.
 */
#include "mcast.h"

#include <errno.h>
#include <string.h>

static bool is_member(struct shca_mcast *m, unsigned hca, uint32_t qpn)
{
	return atomic_load_explicit(&m->qpn, memory_order_relaxed) == qpn &&
	       atomic_load_explicit(&m->hca, memory_order_relaxed) == hca;
}

/* Returns the membership, or NULL. Needs the control lock. */
static struct shca_mcast *find(struct shca_fabric *f, unsigned hca, uint32_t qpn,
			       const union ibv_gid *gid)
{
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *m = &f->hdr->mcast[i];

		if (is_member(m, hca, qpn) && memcmp(&m->gid, gid, sizeof(*gid)) == 0)
			return m;
	}
	return NULL;
}

/* Returns a free entry, or NULL if `max-mcast` memberships exist. Needs the control lock. */
static struct shca_mcast *find_free(struct shca_fabric *f)
{
	struct shca_mcast *free_entry = NULL;
	int64_t used = 0;

	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *m = &f->hdr->mcast[i];

		if (atomic_load_explicit(&m->qpn, memory_order_relaxed) != 0)
			used++;
		else if (!free_entry)
			free_entry = m;
	}
	return used < shca_opt(f, SHCA_O_MAX_MCAST) ? free_entry : NULL;
}

int shca_mcast_join(struct shca_fabric *f, unsigned hca, uint32_t qpn, const union ibv_gid *gid)
{
	struct shca_mcast *m;
	int ret = 0;

	shca_lock(&f->hdr->ctl_lock);
	if (find(f, hca, qpn, gid))
		goto out;
	m = find_free(f);
	if (!m) {
		ret = -ENOMEM;
		goto out;
	}
	m->gid = *gid;
	atomic_store_explicit(&m->hca, hca, memory_order_relaxed);
	/* release: a sender that sees the QPN sees the group too. */
	atomic_store_explicit(&m->qpn, qpn, memory_order_release);
out:
	shca_unlock(&f->hdr->ctl_lock);
	return ret;
}

int shca_mcast_leave(struct shca_fabric *f, unsigned hca, uint32_t qpn, const union ibv_gid *gid)
{
	struct shca_mcast *m;

	shca_lock(&f->hdr->ctl_lock);
	m = find(f, hca, qpn, gid);
	if (m)
		atomic_store_explicit(&m->qpn, 0, memory_order_release);
	shca_unlock(&f->hdr->ctl_lock);
	return m ? 0 : -EINVAL;
}

bool shca_mcast_member(struct shca_fabric *f, unsigned hca, uint32_t qpn)
{
	bool member = false;

	shca_lock(&f->hdr->ctl_lock);
	for (unsigned i = 0; i < SHCA_MAX_MCAST && !member; i++)
		member = is_member(&f->hdr->mcast[i], hca, qpn);
	shca_unlock(&f->hdr->ctl_lock);
	return member;
}

void shca_mcast_leave_all(struct shca_fabric *f, unsigned hca, uint32_t qpn)
{
	shca_lock(&f->hdr->ctl_lock);
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++)
		if (is_member(&f->hdr->mcast[i], hca, qpn))
			atomic_store_explicit(&f->hdr->mcast[i].qpn, 0, memory_order_release);
	shca_unlock(&f->hdr->ctl_lock);
}
