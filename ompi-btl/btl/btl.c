/* SPDX-License-Identifier: BSD-3-Clause */
#include "btl.h"

#include <errno.h>

#include "pml/say.h"

struct mca_btl_tupleq mca_btl_tupleq;

/* Verbosity of the btl framework (btl_base_verbose) from which a level is shown. */
static const int verbosity[] = {
	[TQ_LOG_ERROR] = 0,
	[TQ_LOG_WARN] = 0,
	[TQ_LOG_INFO] = 10,
	[TQ_LOG_DEBUG] = 50,
};

void mca_btl_tupleq_log(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	if (mca_btl_tupleq.opening && level == TQ_LOG_ERROR)
		snprintf(mca_btl_tupleq.open_error, sizeof(mca_btl_tupleq.open_error), "%s", text);
	else
		mca_pml_tupleq_say(verbosity[level],
				   verbosity[level] ? opal_btl_base_framework.framework_output : 0,
				   "btl tupleq", mca_btl_tupleq.name, text);
}

int mca_btl_tupleq_error(int rc)
{
	switch (rc) {
	case 0:
		return OPAL_SUCCESS;
	case -ENOMEM:
	case -EAGAIN:
		return OPAL_ERR_OUT_OF_RESOURCE;
	case -EIO:
		return OPAL_ERR_UNREACH;
	case -EOPNOTSUPP:
		return OPAL_ERR_NOT_SUPPORTED;
	case -EINVAL:
		return OPAL_ERR_BAD_PARAM;
	default:
		return OPAL_ERROR;
	}
}

struct tq_ep *mca_btl_tupleq_ep(void)
{
	if (!mca_btl_tupleq.ep)
		mca_btl_tupleq.ep = tq_find(series_job_key());
	return mca_btl_tupleq.ep;
}

void mca_btl_tupleq_take_limits(void)
{
	mca_btl_base_module_t *m = &mca_btl_tupleq_module;

	if (tq_rma_atomics(mca_btl_tupleq.ep) == TQ_ATOMICS_NONE && m->btl_atomic_flags) {
		mca_btl_tupleq_log(NULL, TQ_LOG_INFO,
				   "The adapter has no atomic operations, so none are offered.");
		m->btl_flags &= ~(MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS);
		m->btl_atomic_flags = 0;
	}
	if (tq_rma_atomics(mca_btl_tupleq.ep) == TQ_ATOMICS_ALL)
		m->btl_atomic_flags |= MCA_BTL_ATOMIC_SUPPORTS_GLOB;
}
