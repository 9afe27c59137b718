/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between processes of a node a message may come by three ways. A copy by the receiver's CPU has
 * the lowest latency. The adapter leaves both CPUs to the programs. Pieces in shared memory are for
 * those who want no adapter, where the kernel allows no copy. SHM.md shows the measurements that
 * the two lengths are from.
 */
#include "proto/common/policy.h"

enum tq_way tq_local_way(const struct tq_peer *peer, uint64_t len)
{
	const struct tq_core *core = peer->core;
	const struct tq_params *params = core->params;
	bool always = params->intranode == TQ_INTRANODE_SHM, readable;

	if (params->intranode == TQ_INTRANODE_HCA ||
	    (!always && len >= (uint64_t)params->intranode_copy))
		return TQ_WAY_ADAPTER;
	/* In this order: the first question attaches the peer's rings, the second is whether they
	 * are attached still. */
	readable = core->ops->try_readable(core->net, peer->link);
	if (!core->ops->is_local(core->net, peer->link))
		return TQ_WAY_ADAPTER;
	return readable ? TQ_WAY_COPY : always ? TQ_WAY_PIECES : TQ_WAY_ADAPTER;
}

bool tq_local_way_wants_queue(const struct tq_peer *peer, uint64_t len)
{
	const struct tq_core *core = peer->core;
	const struct tq_params *params = core->params;

	if (!params->promote_after || params->intranode == TQ_INTRANODE_HCA ||
	    !core->ops->is_local(core->net, peer->link))
		return true;
	if (params->intranode == TQ_INTRANODE_SHM)
		return false;
	return len >= (uint64_t)params->intranode_queue ||
	       !core->ops->try_readable(core->net, peer->link);
}
