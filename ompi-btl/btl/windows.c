/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps osc/rdma from windows that it gets wrong (series_btl_window_fault()), so that Open MPI
 * takes the next module. Open MPI doesn't ask BTLs about windows. So a hook at the end of MPI_Init
 * puts a function of this file in front of the one by which osc/rdma's component offers itself for
 * a window, and changes a default of osc/rdma. A hook in MPI_Finalize takes the function back.
 */
#include "windows.h"

#include "btl.h"
#include "pml/claim.h"

static ompi_osc_base_component_t *rdma; /* osc/rdma; NULL: it isn't there */
static ompi_osc_base_component_query_fn_t query_rdma;

/* Returns true if a BTL is faster, so that osc/rdma takes that one where it reaches all processes
 * of a window. */
static bool has_faster_btl(void)
{
	const uint32_t needed = MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_FOPS;
	mca_btl_base_selected_module_t *item;

	OPAL_LIST_FOREACH(item, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
	{
		const mca_btl_base_module_t *module = item->btl_module;

		if ((module->btl_flags & needed) == needed &&
		    module->btl_latency < mca_btl_tupleq_module.btl_latency)
			return true;
	}
	return false;
}

/* Returns true if all processes of the communicator are on this host. */
static bool is_on_one_host(ompi_communicator_t *comm)
{
	for (int i = 0; i < ompi_comm_size(comm); i++) {
		if (!OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, i)->super.proc_flags))
			return false;
	}
	return true;
}

/* Returns osc's component of that name, or NULL. */
static ompi_osc_base_component_t *find_component(const char *name)
{
	mca_base_component_list_item_t *item;

	OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
			  mca_base_component_list_item_t)
	{
		if (!strcmp(item->cli_component->mca_component_name, name))
			return (ompi_osc_base_component_t *)item->cli_component;
	}
	return NULL;
}

/* Stores whether the displacement units of all processes are equal. Collective. Returns 0, or an
 * OMPI error. */
static int compare_units(ompi_communicator_t *comm, int unit, bool *are_equal)
{
	const int mine[] = {unit, -unit};
	int most[2];
	int rc = comm->c_coll->coll_allreduce(mine, most, 2, MPI_INT, MPI_MAX, comm,
					      comm->c_coll->coll_allreduce_module);

	*are_equal = !rc && most[0] == -most[1];
	return rc;
}

/* Reports that osc/rdma has a fault, but is used because the module without it isn't there. */
static void warn(const struct series_btl_fault *fault)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "osc/rdma is used for a window, although %s. Use --mca osc rdma,sm,pt2pt, so that "
		 "osc/%s can be used instead, which --mca osc or a parameter file leaves out.",
		 fault->reason, fault->instead);
	if (mca_pml_tupleq_claim_warning(NULL, "dynamic"))
		mca_btl_tupleq_log(NULL, TQ_LOG_WARN, text);
}

/* Reports that osc/rdma isn't used: as a warning if the module that replaces it isn't there. */
static void say(const struct series_btl_fault *fault)
{
	char text[512];

	if (find_component(fault->instead)) {
		snprintf(text, sizeof(text), "osc/%s is used for a window instead of osc/rdma: %s.",
			 fault->instead, fault->reason);
		mca_btl_tupleq_log(NULL, TQ_LOG_INFO, text);
		return;
	}
	snprintf(
		text, sizeof(text),
		"osc/rdma isn't used for a window: %s. Use --mca osc rdma,sm,pt2pt, so that osc/%s "
		"can be used instead, which --mca osc or a parameter file leaves out.",
		fault->reason, fault->instead);
	if (mca_pml_tupleq_claim_warning(NULL, "window"))
		mca_btl_tupleq_log(NULL, TQ_LOG_WARN, text);
}

static int query(ompi_win_t *win, void **base, size_t size, int disp_unit,
		 ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
	struct series_btl_window window = {
		.flavor = flavor,
		.is_on_one_host = is_on_one_host(comm),
		.has_faster_btl = has_faster_btl(),
		.has_equal_units = true,
	};
	const struct series_btl_fault *fault;

	/* The flavour and the hosts are the same for all processes, so all come here. */
	if ((flavor == MPI_WIN_FLAVOR_CREATE || flavor == MPI_WIN_FLAVOR_ALLOCATE) &&
	    !window.is_on_one_host && compare_units(comm, disp_unit, &window.has_equal_units))
		return -1;
	fault = series_btl_window_fault(&window);
	if (fault && fault->is_rare && !find_component(fault->instead)) {
		warn(fault);
		fault = NULL;
	}
	if (!fault)
		return query_rdma(win, base, size, disp_unit, comm, info, flavor);
	say(fault);
	return -1;
}

/*
 * Keeps osc/rdma from the adapter's atomic operations in accumulates, unless the user has set how
 * many elements may have them. Open MPI 4.1 loses what MPI_Get_accumulate fetches by them, if a
 * type is derived. Each accumulate takes the window's lock, so a read and a write do as well.
 */
static void avoid_atomics(void)
{
	mca_base_var_source_t source;
	unsigned long *most = NULL;
	int variable = mca_base_var_find("ompi", "osc", "rdma", "network_max_amo");

	if (variable >= 0 && !mca_base_var_get_value(variable, &most, &source, NULL) && most &&
	    source == MCA_BASE_VAR_SOURCE_DEFAULT)
		*most = 0;
}

static void on_init(int argc, char **argv, int requested, int *provided)
{
	(void)argc;
	(void)argv;
	(void)requested;
	(void)provided;
	rdma = find_component("rdma");
	if (!rdma)
		return;
	avoid_atomics();
	query_rdma = rdma->osc_query;
	rdma->osc_query = query;
}

static void on_finalize(void)
{
	if (rdma)
		rdma->osc_query = query_rdma;
	rdma = NULL;
}

static ompi_hook_base_component_t hook = {
	.hookm_version =
		{
			OMPI_HOOK_BASE_VERSION_1_0_0,
			.mca_component_name = "tupleq",
			MCA_BASE_MAKE_VERSION(component, TUPLEQ_MAJOR, TUPLEQ_MINOR,
					      TUPLEQ_RELEASE),
		},
	.hookm_data = {MCA_BASE_METADATA_PARAM_NONE},
	.hookm_mpi_init_bottom = on_init,
	.hookm_mpi_finalize_top = on_finalize,
};

int mca_btl_tupleq_windows_open(void)
{
	return SERIES_BTL_HAS_WINDOW_FAULTS ? ompi_hook_base_register_callbacks(&hook)
					    : OPAL_SUCCESS;
}

void mca_btl_tupleq_windows_close(void)
{
	/* MPI_T_finalize may come after MPI_Finalize, which has closed the framework of hooks. */
	if (SERIES_BTL_HAS_WINDOW_FAULTS && mca_base_framework_is_open(&ompi_hook_base_framework))
		ompi_hook_base_deregister_callbacks(&hook);
}
