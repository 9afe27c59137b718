/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file in the job's directory stands for each kind of warning; Open MPI removes the directory.
 * (show_help, which prints a text once per job, loses it with some versions of PMIx.)
 */
#include "claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "series.h"

bool mca_pml_tupleq_claim_warning(void *arg, const char *kind)
{
	char *path;
	int fd, error;

	(void)arg;
	/* Nobody would remove the file. */
	if (!strcmp(series_job_dir(), opal_tmp_directory()))
		return series_is_first_on_host();
	if (asprintf(&path, "%s/tupleq-%08x-warned-%s", series_job_dir(), series_job_id(), kind) <
	    0)
		return true;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	error = errno;
	free(path);
	if (fd < 0)
		return error != EEXIST;
	close(fd);
	return true;
}
