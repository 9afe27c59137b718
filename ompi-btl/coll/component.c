/* SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, its choice, its modules. */
#include "coll.h"

#include <stdarg.h>

#include "pml/value.h"

/* Each word of a message has a stamp. */
_Static_assert(2 * TUPLEQ_LIMIT_MAX <= TQ_PUT_MAX, "a message is one put");

struct mca_coll_tupleq mca_coll_tupleq = {.lock = OPAL_MUTEX_STATIC_INIT};

/* As the user gave them. */
static const char *priority_text = "40", *limit_text = "1024", *ring_text = "4";
/* A sentence on one that isn't one. */
static char bad_value[256];

void mca_coll_tupleq_say(ompi_communicator_t *comm, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	opal_output_verbose(10, ompi_coll_base_framework.framework_output,
			    "coll tupleq, %s, rank %d: %s", comm->c_name, ompi_comm_rank(comm),
			    text);
}

static int register_pattern(const mca_base_component_t *version)
{
	static const mca_base_var_enum_value_t names[] = {
		{TUPLEQ_AUTO, "auto"},
		{TUPLEQ_DOUBLING, "doubling"},
		{TUPLEQ_DISSEMINATION, "dissemination"},
		{0, NULL},
	};
	mca_base_var_enum_t *values;
	int rc = mca_base_var_enum_create("coll_tupleq_barrier", names, &values);

	if (rc != OPAL_SUCCESS)
		return rc;
	mca_coll_tupleq.pattern = TUPLEQ_AUTO;
	rc = mca_base_component_var_register(
		version, "barrier",
		"Between nodes: recursive doubling, dissemination, or whichever takes fewer steps",
		MCA_BASE_VAR_TYPE_INT, values, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY,
		&mca_coll_tupleq.pattern);
	OBJ_RELEASE(values);
	return rc < 0 ? rc : OPAL_SUCCESS;
}

static int component_register(void)
{
	const mca_base_component_t *version = &mca_coll_tupleq_component.collm_version;
	int rc;

	rc = mca_base_component_var_register(
		version, "priority",
		"Priority of this component (0 to 100), which needs the PML tupleq; tuned has 30.",
		MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
		&priority_text);
	if (rc < 0)
		return rc;
	rc = mca_base_component_var_register(
		version, "limit",
		"Longest MPI_Allreduce, MPI_Bcast and MPI_Reduce (bytes, 0 to 4096) that are done "
		"by RDMA write; 0: none; rounded up to a multiple of 64",
		MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
		&limit_text);
	if (rc < 0)
		return rc;
	rc = mca_base_component_var_register(
		version, "ring",
		"Nonblocking MPI_Ialltoall(v, w), MPI_Iallgather(v), MPI_Igather(v), "
		"MPI_Iscatter(v) "
		"and MPI_Ineighbor_... of one communicator that can be under way at once (0 to "
		"64), "
		"the same on all processes; each entry takes a queue for each peer, and what "
		"exceeds "
		"them starts later. 0: another component does these operations",
		MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
		&ring_text);
	if (rc < 0)
		return rc;
	rc = mca_coll_tupleq_round_register(version);
	return rc < 0 ? rc : register_pattern(version);
}

static int component_close(void)
{
	if (mca_coll_tupleq.progressing)
		opal_progress_unregister(mca_coll_tupleq_progress);
	mca_coll_tupleq.progressing = false;
	mca_coll_tupleq_round_close();
	mca_coll_tupleq_watch_stop();
	return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	(void)mpi_threads; /* any level will do */
	/* Said, where it matters, by comm_query(). */
	if (!mca_pml_tupleq_value("coll_tupleq_priority", priority_text, 100,
				  &mca_coll_tupleq.priority, bad_value, sizeof(bad_value)) ||
	    !mca_pml_tupleq_value("coll_tupleq_limit", limit_text, TUPLEQ_LIMIT_MAX,
				  &mca_coll_tupleq.limit, bad_value, sizeof(bad_value)) ||
	    !mca_pml_tupleq_value("coll_tupleq_ring", ring_text, TUPLEQ_RING_MAX,
				  &mca_coll_tupleq.ring, bad_value, sizeof(bad_value)))
		return OMPI_SUCCESS;
	/* Whole lines, so that what fits is the same everywhere. */
	mca_coll_tupleq.limit = (mca_coll_tupleq.limit + TUPLEQ_LINE - 1) & -TUPLEQ_LINE;
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *retain(mca_coll_base_module_t *module)
{
	OBJ_RETAIN(module);
	return module;
}

#define TAKE_OVER(c, below, name)                                              \
	do {                                                                   \
		(c)->next.name.fn = (below)->coll_##name;                      \
		(c)->next.name.module = retain((below)->coll_##name##_module); \
	} while (0)

#define GIVE_BACK(c, name)                                  \
	do {                                                \
		if ((c)->next.name.module)                  \
			OBJ_RELEASE((c)->next.name.module); \
	} while (0)

static int module_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	const mca_coll_base_comm_coll_t *below = comm->c_coll;

	if (!below->coll_barrier || !below->coll_allreduce || !below->coll_bcast ||
	    !below->coll_reduce)
		return OMPI_ERR_NOT_FOUND;
	c->comm = comm;
	TAKE_OVER(c, below, barrier);
	TAKE_OVER(c, below, allreduce);
	TAKE_OVER(c, below, bcast);
	TAKE_OVER(c, below, reduce);
	return OMPI_SUCCESS;
}

static void module_construct(struct mca_coll_tupleq_module *c)
{
	c->comm = NULL;
	memset(&c->next, 0, sizeof(c->next));
	memset(&c->group, 0, sizeof(c->group));
	atomic_init(&c->state, TUPLEQ_NEW);
	c->setup = NULL;
	c->number = TUPLEQ_FIRST;
	c->turn = 0;
	c->odd = false;
	c->failed = 0;
	c->ops = NULL;
	c->nonblocking = 0;
	c->elsewhere = false;
	c->nrounds = 0;
	memset(c->ring, 0, sizeof(c->ring));
	c->watched_op = c->watched_elsewhere = (struct mca_coll_tupleq_watched){0};
}

static void module_destruct(struct mca_coll_tupleq_module *c)
{
	if (mca_coll_tupleq_state(c) == TUPLEQ_READY)
		mca_coll_tupleq_watch_remove(c);
	mca_coll_tupleq_teardown(c);
	GIVE_BACK(c, barrier);
	GIVE_BACK(c, allreduce);
	GIVE_BACK(c, bcast);
	GIVE_BACK(c, reduce);
}

OBJ_CLASS_INSTANCE(mca_coll_tupleq_module_t, mca_coll_base_module_t, module_construct,
		   module_destruct);

static mca_coll_base_module_t *comm_query(ompi_communicator_t *comm, int *priority)
{
	struct mca_coll_tupleq_module *c;

	*priority = mca_coll_tupleq.priority;
	if (bad_value[0] && tq_find(series_job_key())) {
		opal_output(0, "coll tupleq, rank %u: %s.", series_rank(ompi_proc_local()),
			    bad_value);
		series_abort();
	}
	if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
		return NULL;
	if (!tq_find(series_job_key())) {
		mca_coll_tupleq_say(
			comm, "this process doesn't use the PML tupleq, whose endpoint it needs");
		return NULL;
	}
	c = OBJ_NEW(mca_coll_tupleq_module_t);
	if (!c)
		return NULL;
	c->super.coll_module_enable = module_enable;
	c->super.coll_barrier = mca_coll_tupleq_barrier;
	c->super.coll_ibarrier = mca_coll_tupleq_ibarrier;
	/* Whatever the limit is here: the least of all counts, which the set-up finds out. */
	c->super.coll_allreduce = mca_coll_tupleq_allreduce;
	c->super.coll_bcast = mca_coll_tupleq_bcast;
	c->super.coll_reduce = mca_coll_tupleq_reduce;
	if (mca_coll_tupleq.ring) {
		mca_coll_tupleq_round_dense(&c->super);
		mca_coll_tupleq_round_neighbor(&c->super);
	}
	return &c->super;
}

series_coll_component_t mca_coll_tupleq_component = {
	.collm_version =
		{
			SERIES_COLL_VERSION,
			.mca_component_name = "tupleq",
			MCA_BASE_MAKE_VERSION(component, TUPLEQ_MAJOR, TUPLEQ_MINOR,
					      TUPLEQ_RELEASE),
			.mca_close_component = component_close,
			.mca_register_component_params = component_register,
		},
	.collm_data = {MCA_BASE_METADATA_PARAM_NONE},
	.collm_init_query = init_query,
	.collm_comm_query = comm_query,
};
