/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer needs an address from the modex and some memory; the library connects to it on first use.
 * A process stays a peer while Open MPI may use it again: when processes disconnect and connect
 * again, Open MPI frees its own object of a process and creates another one.
 */
#include "procs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A failed HASH_ADD leaves the element out. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "log.h"
#include "log_peer.h"
#include "pml.h"

struct proc {
	opal_process_name_t name; /* key */
	struct tq_peer *peer;
	bool is_reported; /* as failed */
	UT_hash_handle hh;
};

_Static_assert(sizeof(opal_process_name_t) == 2 * sizeof(uint32_t), "a key has no padding");

static struct proc *procs_known;
static opal_mutex_t procs_lock = OPAL_MUTEX_STATIC_INIT;

static void log_peer(enum tq_log_level level, const char *name, const char *predicate)
{
	mca_pml_tupleq_log_peer(mca_pml_tupleq_log, level, name, predicate);
}

static int add_peer(const ompi_proc_t *proc, struct tq_peer **peer)
{
	char name[300];
	void *address = NULL;
	size_t len = 0;
	int rc;

	series_proc_name(proc, name, sizeof(name));
	if (proc->super.proc_arch != opal_local_arch) {
		log_peer(TQ_LOG_ERROR, name, "is of another architecture, which isn't supported.");
		return series_peer_error();
	}
	rc = series_modex_recv(&mca_pml_tupleq_component.pmlm_version, proc, &address, &len);
	if (rc != OPAL_SUCCESS || !len) {
		log_peer(TQ_LOG_ERROR, name,
			 "has published no address, so it doesn't use the PML tupleq. Name it on "
			 "all hosts: --mca pml tupleq.");
		return series_peer_error();
	}
	rc = tq_peer_add(mca_pml_tupleq.ep, address, len, name, peer);
	free(address);
	if (rc == -ENOMEM)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (rc)
		mca_pml_tupleq_log_unreachable(mca_pml_tupleq_log, TQ_LOG_ERROR, name, rc);
	return rc ? series_peer_error() : OMPI_SUCCESS;
}

static int find_or_add(ompi_proc_t *proc, struct proc **found)
{
	struct proc *known;
	int rc;

	HASH_FIND(hh, procs_known, &proc->super.proc_name, sizeof(known->name), known);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known)
			return OMPI_ERR_OUT_OF_RESOURCE;
		known->name = proc->super.proc_name;
		rc = add_peer(proc, &known->peer);
		if (rc != OMPI_SUCCESS) {
			free(known);
			return rc;
		}
		HASH_ADD(hh, procs_known, name, sizeof(known->name), known);
		if (!known->hh.tbl) {
			tq_peer_remove(known->peer);
			free(known);
			return OMPI_ERR_OUT_OF_RESOURCE;
		}
	}
	*found = known;
	return OMPI_SUCCESS;
}

int mca_pml_tupleq_proc_peer(ompi_proc_t *proc, struct tq_peer **peer)
{
	void **endpoint = &proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
	struct proc *known = NULL;
	int rc = OMPI_SUCCESS;

	opal_mutex_lock(&procs_lock);
	if (!*endpoint) {
		rc = find_or_add(proc, &known);
		*endpoint = known;
	}
	if (rc == OMPI_SUCCESS)
		*peer = ((struct proc *)*endpoint)->peer;
	opal_mutex_unlock(&procs_lock);
	return rc;
}

int mca_pml_tupleq_add_procs(ompi_proc_t **procs, size_t nprocs)
{
	/* The first communicator that contains a process fetches its address. */
	int rc = mca_pml_base_pml_check_selected("tupleq", procs, nprocs);

	return rc == OMPI_SUCCESS ? series_add_to_btls(procs, nprocs) : rc;
}

int mca_pml_tupleq_del_procs(ompi_proc_t **procs, size_t nprocs)
{
	struct tq_peer **peers = malloc(nprocs * sizeof(*peers));
	struct proc *known;
	size_t n = 0;

	for (size_t i = 0; i < nprocs; i++) {
		opal_mutex_lock(&procs_lock);
		known = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
		procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
		if (known)
			HASH_DEL(procs_known, known);
		opal_mutex_unlock(&procs_lock);
		if (known && peers)
			peers[n++] = known->peer;
		else if (known)
			tq_peer_remove(known->peer);
		free(known);
	}
	tq_peers_remove(peers, n);
	free(peers);
	return series_delete_from_btls(procs, nprocs);
}

/* ---- fault tolerance ---- */

/* Polls that find nothing to do, between two looks at all processes, each of which takes the
 * endpoint's lock once for every process. */
enum { IDLE_POLLS = 1024 };

void mca_pml_tupleq_proc_failed(ompi_proc_t *proc)
{
	struct proc *known;

	opal_mutex_lock(&procs_lock);
	known = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
	if (known) {
		known->is_reported = true;
		tq_peer_give_up(known->peer, "Open MPI reports that the process has failed");
	}
	opal_mutex_unlock(&procs_lock);
}

/* Finds a process to which the connection has failed, and marks it as reported. Returns false if
 * none is left. */
static bool take_failed(opal_process_name_t *name)
{
	struct proc *known, *next;
	bool found = false;

	opal_mutex_lock(&procs_lock);
	HASH_ITER(hh, procs_known, known, next) {
		if (known->is_reported || tq_peer_error(known->peer) != -EIO)
			continue;
		known->is_reported = true;
		*name = known->name;
		found = true;
		break;
	}
	opal_mutex_unlock(&procs_lock);
	return found;
}

void mca_pml_tupleq_procs_look(void)
{
	static unsigned idle_polls;
	opal_process_name_t name;
	ompi_proc_t *proc;

	if (mca_pml_tupleq.life == TUPLEQ_FINALIZING ||
	    __atomic_add_fetch(&idle_polls, 1, __ATOMIC_RELAXED) % IDLE_POLLS)
		return;
	while (take_failed(&name)) {
		proc = ompi_proc_find(&name);
		if (proc)
			series_report_failure(proc);
	}
}

void mca_pml_tupleq_procs_close(void)
{
	struct proc *known, *next;

	HASH_ITER(hh, procs_known, known, next) {
		HASH_DEL(procs_known, known);
		free(known);
	}
}
