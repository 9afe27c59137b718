/* SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, its endpoint, its life. */
#include "btl.h"

#include <stdlib.h>

#include "endpoint.h"
#include "failure.h"
#include "frag.h"
#include "pml/cache.h"
#include "pml/claim.h"
#include "pml/params.h"
#include "rma.h"
#include "windows.h"

/* The id of the context of active messages, the only one of this component's endpoint. */
#define ACTIVE_MESSAGES UINT32_MAX

/* Polls without success between two looks at a process for its failure. A look takes the endpoint's
 * lock, as a poll does, so looks are a small part of the work; n processes are all looked at within
 * 64 n polls. */
#define IDLE_POLLS 64

/* Parameters of the library that this component sets itself. */
static const char *const fixed[] = {"protocol", "eager_limit", "eager_max", NULL};

/* Returns true if pml/tupleq is the one that the user wants: its endpoint is used then. */
static bool is_guest(void)
{
	return mca_pml_tupleq_is_named("ompi", "pml", true);
}

static int component_register(void)
{
	mca_base_component_t *version = &mca_btl_tupleq_component.btl_version;
	mca_btl_base_module_t *m = &mca_btl_tupleq_module;
	int rc;

	series_btl_know_pml();
	mca_btl_tupleq_rma_install(m);
	m->btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT;
	/* osc/rdma takes the BTL with the least latency. With pml/tupleq that is this one, also
	 * within a host: over Open MPI's own BTLs 4.1 loses updates there, and crashes. */
	m->btl_latency = is_guest() ? 0 : 3; /* microseconds */
	/* In Mbit/s. Counts only beside another BTL that reaches the same processes. */
	m->btl_bandwidth = 40000;
	/* Lengths, in bytes. A fragment is one eager message of the library, and each of the
	 * receives that are always posted (frag.c) has room for the longest. */
	m->btl_eager_limit = 8192;
	m->btl_rndv_eager_limit = 8192;
	m->btl_max_send_size = 16384;
	m->btl_rdma_pipeline_send_length = 65536;
	m->btl_rdma_pipeline_frag_size = 4 << 20;
	m->btl_min_rdma_pipeline_size = 65536;
	m->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
		       MCA_BTL_FLAGS_RDMA_FLUSH | MCA_BTL_FLAGS_ATOMIC_OPS |
		       MCA_BTL_FLAGS_ATOMIC_FOPS | SERIES_BTL_FLAGS;
	m->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP;
	m->btl_registration_handle_size = TUPLEQ_HANDLE_SIZE;
	m->btl_get_limit = m->btl_put_limit = SIZE_MAX;
	m->btl_get_alignment = m->btl_put_alignment = 0;
	/* The library registers memory of this process itself, by its cache if it has one. */
	m->btl_get_local_registration_threshold = m->btl_put_local_registration_threshold =
		SIZE_MAX;
	rc = mca_btl_base_param_register(version, m);
	return rc < 0 ? rc : mca_pml_tupleq_params_register(version, fixed);
}

/* ---- an endpoint of its own ---- */

static int set_size(struct tq_params *params, const char *name, size_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", value);
	return tq_param_set(params, name, text, mca_btl_tupleq.open_error,
			    sizeof(mca_btl_tupleq.open_error));
}

/* Returns the user's values, with those that this component sets; NULL: open_error says why. */
static struct tq_params *make_params(void)
{
	mca_btl_base_module_t *m = &mca_btl_tupleq_module;
	struct tq_params *params;

	if (m->btl_max_send_size > TUPLEQ_SEND_MAX || m->btl_eager_limit > m->btl_max_send_size ||
	    m->btl_rndv_eager_limit > m->btl_max_send_size) {
		snprintf(mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error),
			 "btl_tupleq_max_send_size takes up to %u bytes, and no less than "
			 "btl_tupleq_eager_limit and btl_tupleq_rndv_eager_limit.",
			 TUPLEQ_SEND_MAX);
		return NULL;
	}
	params =
		mca_pml_tupleq_params(&mca_btl_tupleq_component.btl_version,
				      mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error));
	/* Active messages are received from anybody, so no tuple has a queue; all are eager. */
	if (params && (tq_param_set(params, "protocol", "rget", mca_btl_tupleq.open_error,
				    sizeof(mca_btl_tupleq.open_error)) ||
		       set_size(params, "eager_limit", m->btl_max_send_size) ||
		       set_size(params, "eager_max", m->btl_max_send_size))) {
		tq_params_free(params);
		return NULL;
	}
	return params;
}

static int open_endpoint(void)
{
	static const struct mca_pml_tupleq_cache_owner cache_owner = {
		.ep = &mca_btl_tupleq.ep,
		.log = mca_btl_tupleq_log,
	};
	struct tq_job job = {
		/* Not that of pml/tupleq, by which coll/tupleq would find this endpoint. */
		.key = ~series_job_key(),
		.dir = series_job_dir(),
		.name = mca_btl_tupleq.name,
		.log = mca_btl_tupleq_log,
		.claim_warning = mca_pml_tupleq_claim_warning,
		.complete = mca_btl_tupleq_frag_complete,
	};
	struct tq_params *params = make_params();
	int rc;

	if (!params)
		return -EINVAL;
	mca_btl_tupleq.opening = true;
	rc = tq_open(params, &job, mca_pml_tupleq_cache_open(&cache_owner), &mca_btl_tupleq.ep);
	mca_btl_tupleq.opening = false;
	tq_params_free(params);
	if (rc) {
		mca_btl_tupleq.ep = NULL;
		mca_pml_tupleq_cache_close();
		if (!mca_btl_tupleq.open_error[0])
			snprintf(mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error),
				 "%s.", strerror(-rc));
	}
	return rc;
}

/* Makes the endpoint's context of active messages. Returns false with a text in open_error. */
static bool open_messages(void)
{
	if (tq_ctx_add(mca_btl_tupleq.ep, ACTIVE_MESSAGES, NULL, 0, 0, TQ_CTX_OPEN,
		       &mca_btl_tupleq.ctx) ||
	    mca_btl_tupleq_frags_open() != OPAL_SUCCESS) {
		snprintf(mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error),
			 "There is no memory for active messages.");
		return false;
	}
	return true;
}

/* Publishes the endpoint's address. Returns false with a text in open_error. */
static bool publish_address(void)
{
	size_t len;
	const void *address = tq_address(mca_btl_tupleq.ep, &len);
	int rc = series_modex_send(&mca_btl_tupleq_component.btl_version, address, len);

	if (rc != OPAL_SUCCESS)
		snprintf(mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error),
			 "The address can't be published (%s).", opal_strerror(rc));
	return rc == OPAL_SUCCESS;
}

/* Ends all registrations and then the endpoint. */
static void close_endpoint(void)
{
	tq_flush(mca_btl_tupleq.ep);
	mca_pml_tupleq_cache_close();
	tq_close(mca_btl_tupleq.ep);
	mca_btl_tupleq.ep = NULL;
}

static int open_own(void)
{
	mca_btl_base_module_t *m = &mca_btl_tupleq_module;

	mca_btl_tupleq.is_owner = true;
	OBJ_CONSTRUCT(&mca_btl_tupleq.endpoints_lock, opal_mutex_t);
	/* The address comes first: what is published needs no undoing. */
	if (open_endpoint() || !publish_address() || !open_messages()) {
		mca_btl_tupleq_log(NULL, TQ_LOG_ERROR, mca_btl_tupleq.open_error);
		if (mca_btl_tupleq.ep)
			close_endpoint();
		return OPAL_ERROR;
	}
	/* A process has to be a peer before its messages can come. */
	m->btl_flags |= MCA_BTL_FLAGS_SINGLE_ADD_PROCS;
	mca_btl_tupleq_log(NULL, TQ_LOG_INFO, tq_device_text(mca_btl_tupleq.ep));
	return OPAL_SUCCESS;
}

/*
 * Offers nothing unless --mca pml or --mca btl names tupleq: a component that is merely installed
 * changes nothing for other programs. With pml/tupleq the endpoint is that one's, and carries no
 * active messages, which nobody needs then. Otherwise this component opens one.
 */
static mca_btl_base_module_t **component_init(int *n, bool progress_threads, bool mpi_threads)
{
	mca_btl_base_module_t **modules;

	(void)progress_threads;
	(void)mpi_threads; /* any level will do */
	*n = 0;
	if (!is_guest() && !mca_pml_tupleq_is_named("opal", "btl", false))
		return NULL;
	series_proc_name(ompi_proc_local(), mca_btl_tupleq.name, sizeof(mca_btl_tupleq.name));
	modules = malloc(sizeof(*modules));
	if (!modules || mca_btl_tupleq_rma_open())
		goto free_modules;
	if (!is_guest() && open_own() != OPAL_SUCCESS)
		goto close_rma;
	/* Last: Open MPI unloads a component that offers nothing, and would still call the hook. */
	if (mca_btl_tupleq_windows_open())
		goto close_rma;
	if (is_guest())
		mca_btl_tupleq_module.btl_flags &=
			~(MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE);
	if (mca_btl_tupleq_ep())
		mca_btl_tupleq_take_limits();
	mca_pml_tupleq_params_warn("opal", "btl", mca_btl_tupleq_log);
	modules[0] = &mca_btl_tupleq_module;
	*n = 1;
	return modules;
close_rma:
	mca_btl_tupleq_rma_close();
free_modules:
	free(modules);
	return NULL;
}

static int component_progress(void)
{
	int n;

	/* pml/tupleq makes progress itself. */
	if (!mca_btl_tupleq.is_owner)
		return 0;
	mca_btl_tupleq_frags_retry();
	n = tq_progress(mca_btl_tupleq.ep);
	if (!n && ++mca_btl_tupleq.idle_polls % IDLE_POLLS == 0)
		mca_btl_tupleq_look_for_failures();
	return n;
}

static int module_finalize(mca_btl_base_module_t *module)
{
	(void)module;
	if (mca_btl_tupleq.is_owner) {
		mca_btl_tupleq.closing = true;
		tq_ctx_remove(mca_btl_tupleq.ctx);
		close_endpoint();
		mca_btl_tupleq_frags_close();
	}
	mca_btl_tupleq.ep = NULL;
	mca_btl_tupleq_windows_close();
	mca_btl_tupleq_rma_close();
	return OPAL_SUCCESS;
}

static int component_close(void)
{
	return OPAL_SUCCESS;
}

mca_btl_base_module_t mca_btl_tupleq_module = {
	.btl_component = &mca_btl_tupleq_component,
	.btl_add_procs = mca_btl_tupleq_add_procs,
	.btl_del_procs = mca_btl_tupleq_del_procs,
	.btl_finalize = module_finalize,
	.btl_alloc = mca_btl_tupleq_alloc,
	.btl_free = mca_btl_tupleq_free,
	.btl_prepare_src = mca_btl_tupleq_prepare_src,
	.btl_send = mca_btl_tupleq_send,
	.btl_sendi = mca_btl_tupleq_sendi,
	.btl_register_error = mca_btl_tupleq_register_error,
	.btl_dump = mca_btl_base_dump,
};

mca_btl_base_component_t mca_btl_tupleq_component = {
	.btl_version =
		{
			MCA_BTL_DEFAULT_VERSION("tupleq"),
			.mca_close_component = component_close,
			.mca_register_component_params = component_register,
		},
	.btl_data = {MCA_BASE_METADATA_PARAM_NONE},
	.btl_init = component_init,
	.btl_progress = component_progress,
};
