/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier of R. Gupta, V. Tipparaju, J. Nieplocha, D. Panda ("Efficient Barrier using Remote
 * Memory Operations on VIA-Based Clusters", 2002): the processes of a node meet at flags in shared
 * memory, their leaders write the barrier's number into one another's memory.
 *
 * A word only grows, and who waits for number n goes on at n or more: a fast process may be one
 * barrier ahead, but not two, since it needs our word for the next one.
 */
#include "coll.h"

static bool reached(const struct tupleq_line *line, uint64_t number)
{
	/* acquire: what was done before it was written is seen after this. The numbers wrap. */
	uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

	return (int64_t)(word - number) >= 0;
}

static void announce(struct tupleq_line *line, uint64_t number)
{
	atomic_store_explicit(&line->word, number, memory_order_release);
}

static int write_slot(const struct tupleq_group *g, const struct tupleq_step *step, uint64_t number)
{
	const struct tupleq_node *node = &g->nodes[step->to];
	size_t offset = offsetof(struct tupleq_segment, slots) +
			(size_t)step->to_slot * sizeof(struct tupleq_line);

	return tq_put(node->leader, &number, sizeof(number), node->addr + offset, node->key);
}

static int advance_network(const struct tupleq_group *g, struct tupleq_op *op)
{
	for (; op->at < g->nsteps; op->at++, op->wrote = false) {
		const struct tupleq_step *step = &g->steps[op->at];
		int rc;

		if (!op->wrote && step->to >= 0) {
			rc = write_slot(g, step, op->number);
			if (rc)
				return rc;
		}
		op->wrote = true;
		if (step->from >= 0 && !reached(&g->segment->slots[step->from_slot], op->number))
			return 0;
	}
	return 1;
}

int tupleq_barrier_advance(struct tupleq_coll *c, struct tupleq_op *op)
{
	const struct tupleq_group *g = &c->group;
	struct tupleq_segment *segment = g->segment;
	int rc;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		if (g->me) {
			announce(&segment->arrived[g->me], op->number);
			op->phase = TUPLEQ_LEAVE;
			return reached(&segment->release, op->number);
		}
		for (; op->at < g->nlocal; op->at++) {
			if (op->at && !reached(&segment->arrived[op->at], op->number))
				return 0;
		}
		op->phase = TUPLEQ_NETWORK;
		op->at = 0;
		/* fall through */
	case TUPLEQ_NETWORK:
		rc = advance_network(g, op);
		if (rc > 0)
			announce(&segment->release, op->number);
		return rc;
	case TUPLEQ_LEAVE:
		return reached(&segment->release, op->number);
	}
	return 0;
}

struct tq_peer *tupleq_barrier_awaits(const struct tupleq_coll *c, const struct tupleq_op *op)
{
	const struct tupleq_group *g = &c->group;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		return g->local[op->at];
	case TUPLEQ_NETWORK:
		return g->nodes[g->steps[op->at].from].leader;
	case TUPLEQ_LEAVE:
		break;
	}
	return g->local[0];
}

int tupleq_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	struct tupleq_op op = {.phase = TUPLEQ_ENTER};
	int rc;

	if (OPAL_UNLIKELY(c->state == TUPLEQ_NEW)) {
		rc = tupleq_setup(c);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	if (OPAL_UNLIKELY(c->state == TUPLEQ_DECLINED))
		return c->next.barrier.fn(comm, c->next.barrier.module);
	tupleq_start(c, &op);
	return tupleq_wait(c, &op);
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

static void request_construct(struct tupleq_request *request)
{
	request->super.req_type = OMPI_REQUEST_COLL;
	request->super.req_free = request_free;
	request->super.req_cancel = request_cancel;
}

static void request_destruct(struct tupleq_request *request)
{
	OMPI_REQUEST_FINI(&request->super);
}

typedef struct tupleq_request tupleq_request_t;
OBJ_CLASS_INSTANCE(tupleq_request_t, ompi_request_t, request_construct, request_destruct);

int tupleq_ibarrier(ompi_communicator_t *comm, ompi_request_t **out, mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	struct tupleq_request *request;

	/* The set-up waits for the others, which this may not. */
	if (c->state != TUPLEQ_READY)
		return c->next.ibarrier.fn(comm, out, c->next.ibarrier.module);
	request = OBJ_NEW(tupleq_request_t);
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	OMPI_REQUEST_INIT(&request->super, false);
	request->super.req_mpi_object.comm = comm;
	series_request_pending(&request->super);
	request->op = (struct tupleq_op){.phase = TUPLEQ_ENTER, .request = request};
	/* A freed communicator stays until its operations have ended. */
	request->comm = comm;
	OBJ_RETAIN(comm);
	*out = &request->super;
	tupleq_start(c, &request->op);
	return OMPI_SUCCESS;
}
