/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions for Open MPI 4.1 (BTL 3.1.0). Included by series.h. */
#ifndef TUPLEQ_BTL_SERIES_4_1_H
#define TUPLEQ_BTL_SERIES_4_1_H

/*
 * Makes the value of --mca pml known. The BTLs are initialised before the PML is chosen, and before
 * the framework pml has registered this variable. The framework registers it again, in this way.
 */
static inline void series_btl_know_pml(void)
{
	mca_base_var_register("ompi", "pml", NULL, NULL, "PML components to use",
			      MCA_BASE_VAR_TYPE_STRING, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
			      OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ,
			      &ompi_pml_base_framework.framework_selection);
}

/* Flags of the module that other series don't have. */
#define SERIES_BTL_FLAGS 0

#define SERIES_BTL_HAS_WINDOW_FAULTS true

/* Returns the last number of the version of the Open MPI that runs: 4 for 4.1.4. */
static inline unsigned series_btl_release(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	unsigned release = OMPI_RELEASE_VERSION;
	int len;

	if (PMPI_Get_library_version(text, &len) == MPI_SUCCESS)
		sscanf(text, "Open MPI v4.1.%u", &release);
	return release;
}

/*
 * Returns why osc/rdma must not be used for this window, or NULL.
 * 4.1.1 to 4.1.4 take the lock of a process's attached memory, and then wait for that lock, unless
 * it is in this host's memory. There they look memory up in the owner's table, which moves when the
 * owner attaches or detaches memory. Between hosts a process that is alone on its host reaches its
 * own memory by the unit of rank 0. In a window of one host from MPI_Win_allocate all processes use
 * the memory by their CPUs, but ask the BTL for MPI_Compare_and_swap, without a registration and
 * without the window's lock.
 */
static inline const struct series_btl_fault *
series_btl_window_fault(const struct series_btl_window *window)
{
	static const struct series_btl_fault dynamic = {
		"in Open MPI 4.1.1 to 4.1.4 it waits for ever in a dynamic window of several hosts",
		"pt2pt", false};
	static const struct series_btl_fault moving = {
		"in Open MPI 4.1 MPI_Win_attach in a dynamic window can make operations of other "
		"processes fail that come at the same time",
		"pt2pt", true};
	static const struct series_btl_fault units = {
		"in Open MPI 4.1 it mistakes the displacement unit where units differ between "
		"processes",
		"pt2pt", false};
	static const struct series_btl_fault allocate = {
		"in Open MPI 4.1 MPI_Compare_and_swap would not be atomic in a window of one host "
		"from MPI_Win_allocate",
		"sm", false};
	const unsigned release = series_btl_release();

	if (window->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return !window->is_on_one_host && release >= 1 && release <= 4 ? &dynamic : &moving;
	if (!window->has_equal_units && !window->is_on_one_host)
		return &units;
	if (window->flavor == MPI_WIN_FLAVOR_ALLOCATE && window->is_on_one_host &&
	    !window->has_faster_btl)
		return &allocate;
	return NULL;
}

static inline void series_btl_call(const mca_btl_active_message_callback_t *receiver,
				   mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				   struct mca_btl_base_endpoint_t *endpoint,
				   mca_btl_base_segment_t *segment)
{
	mca_btl_base_descriptor_t message = {.des_segments = segment, .des_segment_count = 1};

	(void)endpoint;
	receiver->cbfunc(module, tag, &message, receiver->cbdata);
}

#endif
