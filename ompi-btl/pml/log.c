/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <errno.h>

#include "pml.h"
#include "say.h"

/* The verbosity of the pml framework (pml_base_verbose) from which a level is shown. */
static const int verbosity[] = {
	[TQ_LOG_ERROR] = 0,
	[TQ_LOG_WARN] = 0,
	[TQ_LOG_INFO] = 10,
	[TQ_LOG_DEBUG] = 50,
};

void mca_pml_tupleq_log(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	/* If Open MPI may select another PML, this isn't an error yet: component.c decides. */
	if (mca_pml_tupleq.life == TUPLEQ_OPENING && level == TQ_LOG_ERROR)
		snprintf(mca_pml_tupleq.open_error, sizeof(mca_pml_tupleq.open_error), "%s", text);
	else
		mca_pml_tupleq_say(verbosity[level],
				   verbosity[level] ? ompi_pml_base_framework.framework_output : 0,
				   "tupleq", mca_pml_tupleq.name, text);
}

void mca_pml_tupleq_explain(const char *text)
{
	static const char line[] = "------------------------------------------------------------"
				   "--------------";

	/* One call, so that output of other processes doesn't get in between. */
	fprintf(stderr, "%s\n%s%s\n", line, text, line);
}

int mca_pml_tupleq_mpi_error_of(int err)
{
	switch (err) {
	case -ECANCELED:
		return MPI_SUCCESS;
	case -EMSGSIZE:
		return MPI_ERR_TRUNCATE;
	case -ENOMEM:
		return MPI_ERR_NO_MEM;
	case -EINVAL:
		return MPI_ERR_RANK;
	case -EBADMSG:
		return MPI_ERR_TAG;
	case -EFAULT:
		return MPI_ERR_BUFFER;
	case -EIO:
	case -ECONNABORTED:
		return series_peer_error();
	case -ESHUTDOWN:
		return series_revoked_error();
	default:
		return MPI_ERR_INTERN;
	}
}
