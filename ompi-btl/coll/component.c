/* SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, when Open MPI selects it, and its modules. */
#include "coll.h"

#include "log.h"
#include "pml/value.h"

/* No more than half of a message are stamps. */
_Static_assert(2 * TUPLEQ_LIMIT_MAX <= TQ_PUT_MAX, "a message is one put");

struct mca_coll_tupleq mca_coll_tupleq = {
	.lock = OPAL_MUTEX_STATIC_INIT,
	.ready_lock = OPAL_MUTEX_STATIC_INIT,
};

/* The numbers that a user can set, with the texts that the user gave. */
static struct {
	const char *name, *text; /* the default, until Open MPI registers the parameter */
	int max;
	int *value;
	const char *help;
} numbers[] = {
	{"priority", "40", 100, &mca_coll_tupleq.priority,
	 "Priority of this component (0 to 100), which needs the PML tupleq; the component tuned "
	 "has 30"},
	{"limit", "1024", TUPLEQ_LIMIT_MAX, &mca_coll_tupleq.limit,
	 "Longest MPI_Allreduce, MPI_Bcast and MPI_Reduce (0 to 4096 bytes) that are done by RDMA "
	 "write; rounded up to a multiple of 64. 0: none are"},
	{"ring", "4", TUPLEQ_RING_MAX, &mca_coll_tupleq.ring,
	 "How many nonblocking collectives of one communicator can be under way at once (0 to 64); "
	 "more wait until one has ended. Each takes up to one queue for each peer. The value must "
	 "be the same on all processes. 0: another component does all but MPI_Ibarrier"},
	{"queues", "256", TUPLEQ_QUEUES_MAX, &mca_coll_tupleq.queues,
	 "The most queues that these operations take at each process for a communicator, for short "
	 "messages and for long ones each (0 to 1048576). A ring has no more entries than that "
	 "allows. If one entry would take more queues, the messages take none. The value must be "
	 "the same on all processes"},
	{"one_round", "65536", TUPLEQ_ONE_ROUND_MAX, &mca_coll_tupleq.one_round,
	 "MPI_Ibcast, MPI_Ireduce, MPI_Iallreduce, MPI_Iscan and MPI_Iexscan take one round of "
	 "messages, which needs no processor, if no process sends more bytes for that (0 to "
	 "1073741824), and otherwise two, which move less. The value must be the same on all "
	 "processes"},
	{"memory", "67108864", TUPLEQ_MEMORY_MAX, &mca_coll_tupleq.memory,
	 "Memory of nonblocking collectives that is kept, and stays registered, for later ones (0 "
	 "to 1073741824 bytes)"},
	{"alltoallv", "1", 1, &mca_coll_tupleq.alltoallv,
	 "1: MPI_Alltoallv of 4 processes or more starts all messages at once, as MPI_Ialltoallv "
	 "does; 0: another component does all of them. The value must be the same on all "
	 "processes"},
	{"allgather", "32768", TUPLEQ_ALLGATHER_MAX, &mca_coll_tupleq.allgather,
	 "Longest blocks of MPI_Allgather, and on average of MPI_Allgatherv, of 4 processes or "
	 "more whose messages all start at once (0 to 1073741824 bytes), from 512 on. The value "
	 "must be the same on all processes"},
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* A sentence about a parameter that isn't valid. */
static char bad_value[256];

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
	rc = mca_base_component_var_register(version, "barrier",
					     "Pattern of barriers between nodes: doubling "
					     "(recursive doubling) and dissemination, with one "
					     "write in each round, or auto (dissemination with "
					     "up to seven writes in a round, which takes fewer "
					     "rounds)",
					     MCA_BASE_VAR_TYPE_INT, values, 0, 0, OPAL_INFO_LVL_5,
					     MCA_BASE_VAR_SCOPE_READONLY, &mca_coll_tupleq.pattern);
	OBJ_RELEASE(values);
	return rc < 0 ? rc : OPAL_SUCCESS;
}

/* The counters of communicators. */
static const struct mca_coll_tupleq_counter counters[] = {
	{"served",
	 "Communicators whose barriers and short MPI_Bcast, MPI_Reduce and MPI_Allreduce are done "
	 "by RDMA write",
	 &mca_coll_tupleq.settled[true]},
	{"declined",
	 "Communicators whose barriers are messages, and whose MPI_Bcast, MPI_Reduce and "
	 "MPI_Allreduce Open MPI's own components do, because a process could not take part",
	 &mca_coll_tupleq.settled[false]},
	{NULL},
};

/* Registers the counters up to one without a name. Returns an Open MPI error. */
static int register_counters(const mca_base_component_t *version,
			     const struct mca_coll_tupleq_counter *counter)
{
	int rc = OPAL_SUCCESS;

	for (; rc >= 0 && counter->name; counter++)
		rc = mca_base_component_pvar_register(
			version, counter->name, counter->help, OPAL_INFO_LVL_4,
			MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
			MCA_BASE_VAR_BIND_NO_OBJECT,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL,
			NULL, counter->value);
	return rc;
}

/* Registers numbers as texts, which init_query() parses. */
static int component_register(void)
{
	const mca_base_component_t *version = &mca_coll_tupleq_component.collm_version;
	int rc;

	for (size_t i = 0; i < NUMBERS; i++) {
		rc = mca_base_component_var_register(
			version, numbers[i].name, numbers[i].help, MCA_BASE_VAR_TYPE_STRING, NULL,
			0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, &numbers[i].text);
		if (rc < 0)
			return rc;
	}
	rc = register_counters(version, counters);
	if (rc >= 0)
		rc = register_counters(version, mca_coll_tupleq_nbc_counters);
	return rc < 0 ? rc : register_pattern(version);
}

static int component_close(void)
{
	if (mca_coll_tupleq.progressing)
		opal_progress_unregister(mca_coll_tupleq_progress);
	mca_coll_tupleq.progressing = false;
	mca_coll_tupleq_nbc_close();
	mca_coll_tupleq_mismatch_close();
	mca_coll_tupleq_notices_close();
	return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
	char name[64];

	(void)progress_threads;
	(void)mpi_threads; /* any level will do */
	for (size_t i = 0; i < NUMBERS; i++) {
		snprintf(name, sizeof(name), "coll_tupleq_%s", numbers[i].name);
		/* comm_query() reports a bad value, if the program uses the PML tupleq. */
		if (!mca_pml_tupleq_parse_number(name, numbers[i].text, numbers[i].max,
						 numbers[i].value, bad_value, sizeof(bad_value)))
			return OMPI_SUCCESS;
	}
	/* Whole cache lines. */
	mca_coll_tupleq.limit = (mca_coll_tupleq.limit + TUPLEQ_LINE - 1) & -TUPLEQ_LINE;
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *retain(mca_coll_base_module_t *module)
{
	OBJ_RETAIN(module);
	return module;
}

#define TAKE_OVER(tupleq, below, name)                                              \
	do {                                                                        \
		(tupleq)->next.name.fn = (below)->coll_##name;                      \
		(tupleq)->next.name.module = retain((below)->coll_##name##_module); \
	} while (0)

#define GIVE_BACK(tupleq, name)                                  \
	do {                                                     \
		if ((tupleq)->next.name.module)                  \
			OBJ_RELEASE((tupleq)->next.name.module); \
	} while (0)

static int module_enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	const mca_coll_base_comm_coll_t *below = comm->c_coll;

	module->comm = comm;
	if (OMPI_COMM_IS_INTER(comm))
		return OMPI_SUCCESS;
	if (!below->coll_barrier || !below->coll_allreduce || !below->coll_bcast ||
	    !below->coll_reduce)
		return OMPI_ERR_NOT_FOUND;
	TAKE_OVER(module, below, barrier);
	TAKE_OVER(module, below, allreduce);
	TAKE_OVER(module, below, bcast);
	TAKE_OVER(module, below, reduce);
	if (!mca_coll_tupleq.ring)
		return OMPI_SUCCESS;
	if (!below->coll_alltoallv || !below->coll_allgather || !below->coll_allgatherv)
		return OMPI_ERR_NOT_FOUND;
	TAKE_OVER(module, below, alltoallv);
	TAKE_OVER(module, below, allgather);
	TAKE_OVER(module, below, allgatherv);
	return OMPI_SUCCESS;
}

static void module_construct(struct mca_coll_tupleq_module *module)
{
	module->comm = NULL;
	memset(&module->next, 0, sizeof(module->next));
	mca_coll_tupleq_group_clear(&module->group);
	atomic_init(&module->state, TUPLEQ_NEW);
	module->setup = NULL;
	module->number = TUPLEQ_FIRST;
	module->bcasts = module->reduces = 0;
	module->odd_synchronizing = false;
	module->failed = 0;
	module->ops = NULL;
	module->nonblocking = 0;
	module->is_delegated = false;
	memset(module->rings, 0, sizeof(module->rings));
	module->npersistent = 0;
	module->last_op = module->last_delegated = (struct mca_coll_tupleq_last_seen){0};
}

static void module_destruct(struct mca_coll_tupleq_module *module)
{
	if (mca_coll_tupleq_state(module) == TUPLEQ_READY)
		mca_coll_tupleq_mismatch_remove(module);
	mca_coll_tupleq_teardown(module);
	GIVE_BACK(module, barrier);
	GIVE_BACK(module, allreduce);
	GIVE_BACK(module, bcast);
	GIVE_BACK(module, reduce);
	GIVE_BACK(module, alltoallv);
	GIVE_BACK(module, allgather);
	GIVE_BACK(module, allgatherv);
}

OBJ_CLASS_INSTANCE(mca_coll_tupleq_module_t, mca_coll_base_module_t, module_construct,
		   module_destruct);

/* Installs the operations that aren't done between two groups. */
static void install_within_group(mca_coll_base_module_t *base)
{
	base->coll_barrier = mca_coll_tupleq_barrier;
	base->coll_ibarrier = mca_coll_tupleq_ibarrier;
	/* Installed even if the limit is 0 here: the set-up finds the least limit of all. */
	base->coll_allreduce = mca_coll_tupleq_allreduce;
	base->coll_bcast = mca_coll_tupleq_bcast;
	base->coll_reduce = mca_coll_tupleq_reduce;
	if (mca_coll_tupleq.ring) {
		mca_coll_tupleq_nbc_neighbor(base);
		mca_coll_tupleq_nbc_reduce_scatter(base);
		mca_coll_tupleq_nbc_scan(base);
		mca_coll_tupleq_nbc_blocking(base);
	}
}

static mca_coll_base_module_t *comm_query(ompi_communicator_t *comm, int *priority)
{
	struct mca_coll_tupleq_module *module;

	*priority = mca_coll_tupleq.priority;
	if (bad_value[0] && tq_find(series_job_key())) {
		opal_output(0, "coll tupleq, rank %u: %s", series_rank(ompi_proc_local()),
			    bad_value);
		series_abort();
	}
	/* Open MPI's own collectives take over: they end with an error if their messages do. */
	if (series_has_fault_tolerance())
		return NULL;
	if (OMPI_COMM_IS_INTER(comm) ? !mca_coll_tupleq.ring : ompi_comm_size(comm) < 2)
		return NULL;
	if (!tq_find(series_job_key())) {
		mca_coll_tupleq_verbose(
			comm, "this process doesn't use the PML tupleq, whose endpoint it needs");
		return NULL;
	}
	module = OBJ_NEW(mca_coll_tupleq_module_t);
	if (!module)
		return NULL;
	module->super.coll_module_enable = module_enable;
	if (mca_coll_tupleq.ring) {
		mca_coll_tupleq_nbc_dense(&module->super);
		mca_coll_tupleq_nbc_bcast(&module->super);
		mca_coll_tupleq_nbc_reduce(&module->super);
	}
	if (!OMPI_COMM_IS_INTER(comm))
		install_within_group(&module->super);
	return &module->super;
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
