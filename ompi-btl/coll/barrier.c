/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier and MPI_Ibarrier. */
#include "coll.h"

int mca_coll_tupleq_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	bool ready;
	int rc = mca_coll_tupleq_ready(c, 0, &ready);

	if (rc != OMPI_SUCCESS)
		return rc;
	return ready ? mca_coll_tupleq_run(c, NULL)
		     : c->next.barrier.fn(comm, c->next.barrier.module);
}

/* ---- nonblocking ---- */

static int request_free(ompi_request_t **request)
{
	OBJ_RELEASE(*request);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

/* MPI has no cancelling of collectives. */
static int request_cancel(ompi_request_t *request, int complete)
{
	(void)request;
	(void)complete;
	return MPI_ERR_REQUEST;
}

static void request_construct(struct mca_coll_tupleq_request *request)
{
	request->super.req_type = OMPI_REQUEST_COLL;
	request->super.req_free = request_free;
	request->super.req_cancel = request_cancel;
	request->exchange.blocks = NULL;
}

static void request_destruct(struct mca_coll_tupleq_request *request)
{
	OMPI_REQUEST_FINI(&request->super);
}

typedef struct mca_coll_tupleq_request mca_coll_tupleq_request_t;
OBJ_CLASS_INSTANCE(mca_coll_tupleq_request_t, ompi_request_t, request_construct, request_destruct);

int mca_coll_tupleq_ibarrier(ompi_communicator_t *comm, ompi_request_t **out,
			     mca_coll_base_module_t *module)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	struct mca_coll_tupleq_request *request;

	request = OBJ_NEW(mca_coll_tupleq_request_t);
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	OMPI_REQUEST_INIT(&request->super, false);
	request->super.req_mpi_object.comm = comm;
	series_request_pending(&request->super);
	request->op = (struct mca_coll_tupleq_op){.phase = TUPLEQ_ENTER, .request = request};
	/* Drawn now, and always, so that all processes draw the same. */
	request->tag = series_take_tags(comm, 1);
	/* A freed communicator stays until its operations have ended. */
	request->comm = comm;
	OBJ_RETAIN(comm);
	*out = &request->super;
	mca_coll_tupleq_start(c, &request->op);
	return OMPI_SUCCESS;
}
