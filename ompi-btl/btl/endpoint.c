/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <stdlib.h>
#include <utlist.h>

#include "pml/log_peer.h"

/* The component under whose name pml/tupleq has published its address. */
static const mca_base_component_t pml = {
	.mca_type_name = "pml",
	.mca_component_name = "tupleq",
	.mca_component_major_version = TUPLEQ_MAJOR,
	.mca_component_minor_version = TUPLEQ_MINOR,
	.mca_component_release_version = TUPLEQ_RELEASE,
};

static int add_own_peer(const char *name, const void *address, size_t len,
			mca_btl_base_endpoint_t *endpoint)
{
	int rc = tq_peer_add(mca_btl_tupleq.ep, address, len, name, &endpoint->peer);

	if (rc) {
		mca_pml_tupleq_log_unreachable(mca_btl_tupleq_log, TQ_LOG_WARN, name, rc);
		return rc;
	}
	rc = tq_ctx_join(mca_btl_tupleq.ctx, endpoint->peer);
	if (rc < 0) {
		tq_peer_remove(endpoint->peer);
		return rc;
	}
	endpoint->rank = rc;
	opal_mutex_lock(&mca_btl_tupleq.endpoints_lock);
	DL_APPEND(mca_btl_tupleq.endpoints, endpoint);
	opal_mutex_unlock(&mca_btl_tupleq.endpoints_lock);
	return 0;
}

/* Adds a process. Returns its endpoint, or NULL if the process can't be reached. */
static mca_btl_base_endpoint_t *add(ompi_proc_t *proc)
{
	bool is_owner = mca_btl_tupleq.is_owner;
	mca_btl_base_endpoint_t *endpoint = calloc(1, sizeof(*endpoint));
	void *address = NULL;
	size_t len = 0;
	char name[300];

	if (!endpoint)
		return NULL;
	series_proc_name(proc, name, sizeof(name));
	endpoint->proc = proc;
	if (proc->super.proc_arch != opal_local_arch ||
	    series_modex_recv(is_owner ? &mca_btl_tupleq_component.btl_version : &pml, proc,
			      &address, &len) != OPAL_SUCCESS ||
	    !len)
		goto unreachable;
	if (is_owner) {
		if (add_own_peer(name, address, len, endpoint))
			goto unreachable;
	} else {
		endpoint->peer = tq_peer_find(mca_btl_tupleq.ep, address, len);
		if (!endpoint->peer)
			goto unreachable;
	}
	free(address);
	return endpoint;

unreachable:
	free(address);
	free(endpoint);
	return NULL;
}

int mca_btl_tupleq_add_procs(mca_btl_base_module_t *module, size_t n, opal_proc_t **procs,
			     mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	(void)module;
	if (!mca_btl_tupleq_ep())
		return OPAL_ERR_UNREACH;
	mca_btl_tupleq_take_limits();
	for (size_t i = 0; i < n; i++) {
		endpoints[i] = add((ompi_proc_t *)procs[i]);
		if (endpoints[i] && (ompi_proc_t *)procs[i] == ompi_proc_local())
			mca_btl_tupleq.self = endpoints[i]->peer;
		if (endpoints[i] && reachable)
			opal_bitmap_set_bit(reachable, (int)i);
	}
	return OPAL_SUCCESS;
}

static void forget(mca_btl_base_endpoint_t *endpoint)
{
	opal_mutex_lock(&mca_btl_tupleq.endpoints_lock);
	DL_DELETE(mca_btl_tupleq.endpoints, endpoint);
	opal_mutex_unlock(&mca_btl_tupleq.endpoints_lock);
}

int mca_btl_tupleq_del_procs(mca_btl_base_module_t *module, size_t n, opal_proc_t **procs,
			     mca_btl_base_endpoint_t **endpoints)
{
	struct tq_peer **peers = malloc((n + 1) * sizeof(*peers));
	size_t npeers = 0;

	(void)module;
	(void)procs;
	for (size_t i = 0; i < n; i++) {
		if (!endpoints[i])
			continue;
		/* Peers of pml/tupleq are removed by that one, which may have done so. */
		if (mca_btl_tupleq.is_owner) {
			forget(endpoints[i]);
			if (peers)
				peers[npeers++] = endpoints[i]->peer;
			else
				tq_peer_remove(endpoints[i]->peer);
		}
		free(endpoints[i]);
	}
	tq_peers_remove(peers, npeers);
	free(peers);
	return OPAL_SUCCESS;
}
