/* SPDX-License-Identifier: BSD-3-Clause */
#include "failure.h"

#include <errno.h>
#include <utlist.h>

static mca_btl_base_module_error_cb_fn_t error_function; /* the PML's; NULL: it has none */

int mca_btl_tupleq_register_error(mca_btl_base_module_t *module,
				  mca_btl_base_module_error_cb_fn_t function)
{
	(void)module;
	error_function = function;
	return OPAL_SUCCESS;
}

void mca_btl_tupleq_end_job(int code, const char *during)
{
	ompi_mpi_errors_are_fatal_win_handler(NULL, &code, during);
}

/* Marks a process as reported, unless this process is about to end, too. Returns true if the
 * failure is to be reported, as it hasn't been yet. */
static bool mark_reported(mca_btl_base_endpoint_t *endpoint)
{
	/* Others may be gone when this process is about to go, too. */
	if (mca_btl_tupleq.closing || ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED)
		return false;
	return !__atomic_exchange_n(&endpoint->is_reported, true, __ATOMIC_RELAXED);
}

static void report(ompi_proc_t *proc)
{
	char name[300], text[400];

	series_proc_name(proc, name, sizeof(name));
	if (!error_function) {
		/* Logged as well, because mpirun sometimes loses what MPI prints of an error. */
		snprintf(text, sizeof(text),
			 "One-sided communication with %s has failed, which ends the job.", name);
		mca_btl_tupleq_log(NULL, TQ_LOG_ERROR, text);
		snprintf(text, sizeof(text), "one-sided communication with %s", name);
		mca_btl_tupleq_end_job(series_peer_error(), text);
		return;
	}
	snprintf(text, sizeof(text), "The communication with %s has failed.", name);
	error_function(&mca_btl_tupleq_module, MCA_BTL_ERROR_FLAGS_FATAL, &proc->super, text);
}

void mca_btl_tupleq_failed(mca_btl_base_endpoint_t *endpoint)
{
	if (mark_reported(endpoint))
		report(endpoint->proc);
}

void mca_btl_tupleq_look_for_failures(void)
{
	mca_btl_base_endpoint_t *endpoint;
	ompi_proc_t *proc = NULL;

	opal_mutex_lock(&mca_btl_tupleq.endpoints_lock);
	endpoint = mca_btl_tupleq.endpoints;
	if (endpoint) {
		DL_DELETE(mca_btl_tupleq.endpoints, endpoint);
		DL_APPEND(mca_btl_tupleq.endpoints, endpoint);
		if (tq_peer_error(endpoint->peer) == -EIO && mark_reported(endpoint)) {
			/* Another thread may remove the endpoint once the lock is released. */
			proc = endpoint->proc;
			OBJ_RETAIN(proc);
		}
	}
	opal_mutex_unlock(&mca_btl_tupleq.endpoints_lock);
	if (!proc)
		return;
	report(proc);
	OBJ_RELEASE(proc);
}
