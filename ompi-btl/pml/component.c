/* SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, its selection, and opening and closing the endpoint. */
#include <errno.h>
#include <stdlib.h>

#include "cache.h"
#include "claim.h"
#include "comm.h"
#include "dump.h"
#include "gpu.h"
#include "log.h"
#include "params.h"
#include "probe.h"
#include "procs.h"
#include "pvars.h"
#include "recv.h"
#include "report.h"
#include "send.h"
#include "start.h"
#include "value.h"

struct mca_pml_tupleq mca_pml_tupleq;

/* The parameter as the user gave it. */
static const char *priority_text = "5";

static int component_register(void)
{
	const mca_base_component_t *version = &mca_pml_tupleq_component.pmlm_version;
	int rc;

	rc = mca_base_component_var_register(version, "priority",
					     "Priority of this component (0 to 100) among those "
					     "that Open MPI tries; ob1 has 20",
					     MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
					     MCA_BASE_VAR_SCOPE_READONLY, &priority_text);
	if (rc < 0)
		return rc;
	mca_pml_tupleq.stats = false;
	rc = mca_base_component_var_register(version, "stats",
					     "If true, rank 0 reports at the end of the job which "
					     "share of the messages the HCA matched, the busiest "
					     "tuples, and why other messages were matched by "
					     "software",
					     MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_2,
					     MCA_BASE_VAR_SCOPE_READONLY, &mca_pml_tupleq.stats);
	if (rc < 0)
		return rc;
	rc = mca_pml_tupleq_params_register(version, NULL);
	return rc == OPAL_SUCCESS ? mca_pml_tupleq_pvars_register() : rc;
}

static void explain(const char *why, bool no_device)
{
	static const char needs[] =
		"\nTupleQ needs an InfiniBand or RoCE adapter that has XRC (extended reliable\n"
		"connection) with ibv_open_qp(), as those of the mlx4, mlx5 and hns drivers, with\n"
		"an active port. On other adapters leave \"--mca pml tupleq\" out, so that Open "
		"MPI\n"
		"takes another PML. Where there is none, a software adapter can stand in for "
		"it:\n\n"
		"  softhca run -- mpirun -n 2 --mca pml tupleq ./program\n";
	char *text;

	/* The other processes of a host mostly have the same problem: a line suffices. */
	if (!series_is_first_on_host() ||
	    asprintf(&text, "The PML tupleq was asked for, but it can't be used by %s:\n\n  %s\n%s",
		     mca_pml_tupleq.name, why, no_device ? needs : "") < 0) {
		mca_pml_tupleq_log(NULL, TQ_LOG_ERROR, why);
		return;
	}
	mca_pml_tupleq_explain(text);
	free(text);
}

/* Opens the endpoint. Returns 0, or a negative number with the reason in mca_pml_tupleq.open_error;
 * -ENODEV: no adapter is suitable. */
static int open_endpoint(void)
{
	static const struct mca_pml_tupleq_cache_owner cache_owner = {
		.ep = &mca_pml_tupleq.ep,
		.log = mca_pml_tupleq_log,
		.invalidated = mca_pml_tupleq_gpu_invalidate,
	};
	struct tq_job job = {
		.key = series_job_key(),
		.dir = series_job_dir(),
		.name = mca_pml_tupleq.name,
		.log = mca_pml_tupleq_log,
		.claim_warning = mca_pml_tupleq_claim_warning,
		.complete = mca_pml_tupleq_complete,
		.send_pending = mca_pml_tupleq_isend_pending,
	};
	const struct tq_mr_cache *cache;
	struct tq_params *params;
	int rc;

	if (!mca_pml_tupleq_parse_number("pml_tupleq_priority", priority_text, 100,
					 &mca_pml_tupleq.priority, mca_pml_tupleq.open_error,
					 sizeof(mca_pml_tupleq.open_error)))
		return -1;
	params =
		mca_pml_tupleq_params(&mca_pml_tupleq_component.pmlm_version,
				      mca_pml_tupleq.open_error, sizeof(mca_pml_tupleq.open_error));
	if (!params)
		return -1;
	cache = mca_pml_tupleq_cache_open(&cache_owner);
	if (cache)
		mca_pml_tupleq_gpu_cache_pages();
	mca_pml_tupleq.life = TUPLEQ_OPENING;
	rc = tq_open(params, &job, cache, &mca_pml_tupleq.ep);
	mca_pml_tupleq.life = rc ? TUPLEQ_CLOSED : TUPLEQ_OPEN;
	tq_params_free(params);
	if (!rc)
		return 0;
	mca_pml_tupleq.ep = NULL;
	if (!mca_pml_tupleq.open_error[0])
		snprintf(mca_pml_tupleq.open_error, sizeof(mca_pml_tupleq.open_error), "%s.",
			 strerror(-rc));
	mca_pml_tupleq_cache_close();
	return rc;
}

static int progress(void)
{
	int n = 0;

	if (OPAL_UNLIKELY(__atomic_load_n(&mca_pml_tupleq.has_polled, __ATOMIC_RELAXED)))
		__atomic_store_n(&mca_pml_tupleq.has_polled, false, __ATOMIC_RELAXED);
	else
		n = tq_progress(mca_pml_tupleq.ep);
	if (OPAL_UNLIKELY(series_has_fault_tolerance()) && !n)
		mca_pml_tupleq_procs_look();
	return n;
}

static int publish_address(void)
{
	const void *address;
	size_t len;

	address = tq_address(mca_pml_tupleq.ep, &len);
	return series_modex_send(&mca_pml_tupleq_component.pmlm_version, address, len);
}

static void close_endpoint(void)
{
	/* Registrations end after their last use and before the endpoint. */
	tq_flush(mca_pml_tupleq.ep);
	mca_pml_tupleq_cache_close();
	mca_pml_tupleq_pvars_keep();
	tq_close(mca_pml_tupleq.ep);
	mca_pml_tupleq.ep = NULL;
	mca_pml_tupleq.life = TUPLEQ_CLOSED;
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
	int rc;

	(void)progress_threads; /* any level of threads will do */
	series_proc_name(ompi_proc_local(), mca_pml_tupleq.name, sizeof(mca_pml_tupleq.name));
	rc = open_endpoint();
	*priority = mca_pml_tupleq.priority;
	if (rc) {
		if (mca_pml_tupleq_is_named("ompi", "pml", false))
			explain(mca_pml_tupleq.open_error, rc == -ENODEV);
		else
			mca_pml_tupleq_log(NULL, TQ_LOG_INFO, mca_pml_tupleq.open_error);
		return NULL;
	}
	mca_pml_tupleq_log(NULL, TQ_LOG_INFO, tq_device_text(mca_pml_tupleq.ep));
	if (publish_address() != OPAL_SUCCESS) {
		mca_pml_tupleq_log(NULL, TQ_LOG_ERROR, "The address can't be published.");
		close_endpoint();
		return NULL;
	}
	series_open_btls(mpi_threads);
	if (series_has_fault_tolerance())
		mca_pml_tupleq_module.pml_max_contextid = SERIES_MAX_INDEX;
	return &mca_pml_tupleq_module;
}

/* Called when Open MPI has selected this component. */
static int enable(bool on)
{
	int rc;

	if (!on)
		return OMPI_SUCCESS;
	OBJ_CONSTRUCT(&mca_pml_tupleq.requests, opal_free_list_t);
	rc = opal_free_list_init(&mca_pml_tupleq.requests, sizeof(mca_pml_tupleq_request_t),
				 opal_cache_line_size, OBJ_CLASS(mca_pml_tupleq_request_t), 0,
				 opal_cache_line_size, 32, -1, 128, NULL, 0, NULL, NULL, NULL);
	if (rc != OPAL_SUCCESS)
		return rc;
	mca_pml_tupleq.life = TUPLEQ_ENABLED;
	opal_progress_register(progress);
	series_add_peer_error();
	mca_pml_tupleq_params_warn("ompi", "pml", mca_pml_tupleq_log);
	mca_pml_tupleq_params_warn("ompi", "coll", mca_pml_tupleq_log);
	return mca_pml_tupleq.stats ? mca_pml_tupleq_report_open() : OMPI_SUCCESS;
}

/* Called for each component that returned a module, selected or not. */
static int component_finalize(void)
{
	bool was_enabled = mca_pml_tupleq.life >= TUPLEQ_ENABLED;

	if (!mca_pml_tupleq.ep)
		return OMPI_SUCCESS;
	if (was_enabled) {
		if (mca_pml_tupleq.stats)
			mca_pml_tupleq_report_close();
		opal_progress_unregister(progress);
	}
	close_endpoint();
	mca_pml_tupleq_procs_close();
	if (was_enabled)
		OBJ_DESTRUCT(&mca_pml_tupleq.requests);
	return OMPI_SUCCESS;
}

mca_pml_base_module_t mca_pml_tupleq_module = {
	.pml_add_procs = mca_pml_tupleq_add_procs,
	.pml_del_procs = mca_pml_tupleq_del_procs,
	.pml_enable = enable,
	.pml_add_comm = mca_pml_tupleq_add_comm,
	.pml_del_comm = mca_pml_tupleq_del_comm,
	.pml_irecv_init = mca_pml_tupleq_irecv_init,
	.pml_irecv = mca_pml_tupleq_irecv,
	.pml_recv = mca_pml_tupleq_recv,
	.pml_isend_init = mca_pml_tupleq_isend_init,
	.pml_isend = mca_pml_tupleq_isend,
	.pml_send = mca_pml_tupleq_send,
	.pml_iprobe = mca_pml_tupleq_iprobe,
	.pml_probe = mca_pml_tupleq_probe,
	.pml_start = mca_pml_tupleq_start,
	.pml_improbe = mca_pml_tupleq_improbe,
	.pml_mprobe = mca_pml_tupleq_mprobe,
	.pml_imrecv = mca_pml_tupleq_imrecv,
	.pml_mrecv = mca_pml_tupleq_mrecv,
	.pml_dump = mca_pml_tupleq_dump,
	SERIES_PML_MODULE(mca_pml_tupleq_revoke_comm),
	.pml_max_contextid = INT32_MAX,
	.pml_max_tag = INT32_MAX,
	.pml_flags =
		SERIES_PML_FLAGS, /* a communicator looks up its processes when it needs them */
};

mca_pml_base_component_t mca_pml_tupleq_component = {
	.pmlm_version =
		{
			SERIES_PML_VERSION,
			.mca_component_name = "tupleq",
			MCA_BASE_MAKE_VERSION(component, TUPLEQ_MAJOR, TUPLEQ_MINOR,
					      TUPLEQ_RELEASE),
			.mca_register_component_params = component_register,
		},
	.pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
	.pmlm_init = component_init,
	.pmlm_finalize = component_finalize,
};
