/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "procs.h"
#include "request.h"

static unsigned ctx_flags(uint32_t assertions)
{
	unsigned flags = 0;

	if (assertions & OMPI_COMM_ASSERT_NO_ANY_SOURCE)
		flags |= TQ_CTX_NO_ANY_SOURCE;
	if (assertions & OMPI_COMM_ASSERT_NO_ANY_TAG)
		flags |= TQ_CTX_NO_ANY_TAG;
	if (assertions & OMPI_COMM_ASSERT_EXACT_LENGTH)
		flags |= TQ_CTX_EXACT_LENGTH;
	if (assertions & OMPI_COMM_ASSERT_ALLOW_OVERTAKE)
		flags |= TQ_CTX_OVERTAKING;
	return flags;
}

static int add_comm(ompi_communicator_t *comm)
{
	/* The remote group is the communicator's own group, except in an intercommunicator. */
	int n = ompi_group_size(comm->c_remote_group), i, rc = OMPI_SUCCESS;
	struct tq_peer **peers = calloc(n, sizeof(struct tq_peer *));
	struct mca_pml_comm_t *pc = calloc(1, sizeof(*pc));

	if ((n && !peers) || !pc) {
		rc = OMPI_ERR_OUT_OF_RESOURCE;
		goto out;
	}
	for (i = 0; i < n && rc == OMPI_SUCCESS; i++)
		rc = mca_pml_tupleq_proc_peer(ompi_comm_peer_lookup(comm, i), &peers[i]);
	if (rc != OMPI_SUCCESS)
		goto out;

	series_subscribe_assertions(comm);
	pc->assertions = series_assertions(comm);
	rc = tq_ctx_add(mca_pml_tupleq.ep, series_context_id(comm), peers, n, comm->c_my_rank,
			ctx_flags(pc->assertions), &pc->ctx);
	if (rc == -EINVAL) {
		char text[160];

		snprintf(text, sizeof(text),
			 "Open MPI gave two communicators the context id %u. Several threads or "
			 "nonblocking calls may have created them at once: create them one after "
			 "the other.",
			 series_context_id(comm));
		mca_pml_tupleq_log(NULL, TQ_LOG_ERROR, text);
	}
	if (rc) {
		rc = rc == -EINVAL ? MPI_ERR_INTERN : mca_pml_tupleq_mpi_error(rc);
		goto out;
	}
	pc->refs = 1;
	comm->c_pml_comm = pc;
	pc = NULL;
out:
	free(pc);
	free(peers);
	return rc;
}

int mca_pml_tupleq_add_comm(ompi_communicator_t *comm)
{
	int rc;

	if (series_is_predefined(comm))
		series_show_last_error();
	rc = add_comm(comm);
	if (rc != OMPI_SUCCESS && series_is_predefined(comm))
		series_abort();
	return rc;
}

void mca_pml_tupleq_comm_put(struct mca_pml_comm_t *pml_comm)
{
	if (!mca_pml_tupleq_add_refs(&pml_comm->refs, -1))
		free(pml_comm);
}

int mca_pml_tupleq_del_comm(ompi_communicator_t *comm)
{
	struct mca_pml_comm_t *pc = comm->c_pml_comm;

	/* MPI_Finalize ends the predefined communicators first. */
	if (series_is_predefined(comm))
		mca_pml_tupleq.life = TUPLEQ_FINALIZING;
	if (!pc)
		return OMPI_SUCCESS;
	comm->c_pml_comm = NULL;
	tq_ctx_remove(pc->ctx);
	pc->is_gone = true;
	mca_pml_tupleq_comm_put(pc);
	return OMPI_SUCCESS;
}

/* ---- fault tolerance ---- */

/* Gives the processes up that Open MPI knows to have failed. */
static void give_up_failed(ompi_group_t *group)
{
	for (int rank = 0; rank < ompi_group_size(group); rank++) {
		ompi_proc_t *proc = ompi_group_get_proc_ptr(group, rank, false);

		if (proc && series_has_failed(proc))
			mca_pml_tupleq_proc_failed(proc);
	}
}

int mca_pml_tupleq_revoke_comm(ompi_communicator_t *comm, bool coll_only)
{
	/* Collectives of an intercommunicator use the communicator of its own side, too. */
	if (OMPI_COMM_IS_INTER(comm) && comm->c_local_comm)
		mca_pml_tupleq_revoke_comm(comm->c_local_comm, coll_only);
	series_mark_revoked(comm, coll_only);
	if (!comm->c_pml_comm)
		return OMPI_SUCCESS;
	give_up_failed(comm->c_remote_group);
	tq_ctx_revoke(comm->c_pml_comm->ctx, coll_only,
		      series_is_revoked(comm) ? -ESHUTDOWN : -ECONNABORTED);
	return OMPI_SUCCESS;
}

void mca_pml_tupleq_comm_update_assertions(ompi_communicator_t *comm)
{
	comm->c_pml_comm->assertions = series_assertions(comm);
	tq_ctx_set_flags(comm->c_pml_comm->ctx, ctx_flags(comm->c_pml_comm->assertions));
}
