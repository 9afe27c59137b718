/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file in the job's directory stands for each kind of warning; Open MPI removes the directory.
 * (show_help, which prints a text once per job, loses it with some versions of PMIx.)
 */
#include "claim.h"

#include <errno.h>
#include <fcntl.h>

#include "series.h"

bool mca_pml_tupleq_claim_warning(void *arg, const char *kind)
{
	char path[4096];
	int fd;

	(void)arg;
	/* Nobody would remove the file. */
	if (!strcmp(series_job_dir(), opal_tmp_directory()))
		return series_is_first_on_host();
	if (snprintf(path, sizeof(path), "%s/tupleq-%08x-warned-%s", series_job_dir(),
		     series_job_id(), kind) >= (int)sizeof(path))
		return true;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno != EEXIST;
	close(fd);
	return true;
}
