/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier and MPI_Ibarrier. */
#include "coll.h"

int mca_coll_tupleq_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	bool ready;
	int rc = mca_coll_tupleq_await_setup(module, 0, &ready);

	if (rc != OMPI_SUCCESS)
		return rc;
	return ready ? mca_coll_tupleq_run(module, NULL)
		     : module->next.barrier.fn(comm, module->next.barrier.module);
}

/* ---- nonblocking ---- */

static void request_construct(struct mca_coll_tupleq_ibarrier_request *request)
{
	mca_coll_tupleq_request_construct(&request->super);
	request->exchange.blocks = NULL;
}

static void request_destruct(struct mca_coll_tupleq_ibarrier_request *request)
{
	OMPI_REQUEST_FINI(&request->super);
}

typedef struct mca_coll_tupleq_ibarrier_request mca_coll_tupleq_ibarrier_request_t;
OBJ_CLASS_INSTANCE(mca_coll_tupleq_ibarrier_request_t, ompi_request_t, request_construct,
		   request_destruct);

int mca_coll_tupleq_ibarrier(ompi_communicator_t *comm, ompi_request_t **out,
			     mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	struct mca_coll_tupleq_ibarrier_request *request;

	request = OBJ_NEW(mca_coll_tupleq_ibarrier_request_t);
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	OMPI_REQUEST_INIT(&request->super, false);
	request->super.req_mpi_object.comm = comm;
	series_request_pending(&request->super);
	request->op = (struct mca_coll_tupleq_op){.phase = TUPLEQ_ENTER, .request = request};
	/* Each call takes a tag, needed or not, so that all processes take the same one. */
	request->tag = series_take_tags(comm, 1);
	/* The user may free the communicator before the operation ends. */
	request->comm = comm;
	OBJ_RETAIN(comm);
	*out = &request->super;
	mca_coll_tupleq_start(module, &request->op);
	return OMPI_SUCCESS;
}
