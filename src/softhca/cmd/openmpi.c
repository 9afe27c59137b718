/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * openmpi.c - tells Open MPI where the project's components are, so that mpirun needs no option.
 */
#define _GNU_SOURCE 1
#include "openmpi.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPONENT "mca_pml_tupleq.so"
#define OMPI_PATH "OMPI_MCA_mca_base_component_path"
#define PMIX_PATH "PMIX_MCA_mca_base_component_path"

/* Stores DIR/BELOW, where DIR has `len` characters, in `folder`. Returns -ENOENT if the component
 * isn't there. */
static int try_folder(const char *dir, size_t len, const char *below, char *folder)
{
	char name[PATH_MAX], component[PATH_MAX + sizeof(COMPONENT)];

	if (snprintf(name, sizeof(name), "%.*s%s", (int)len, dir, below) >= (int)sizeof(name) ||
	    !realpath(name, folder))
		return -ENOENT;
	snprintf(component, sizeof(component), "%s/" COMPONENT, folder);
	return access(component, R_OK) ? -ENOENT : 0;
}

static int find_components(const char *library, char *folder)
{
	/* From the library's folder: of a build tree, or installed. */
	static const char *const below[] = {"/../../../ompi-btl/.libs", "/../openmpi"};
	const char *slash = strrchr(library, '/');

	for (size_t i = 0; slash && i < sizeof(below) / sizeof(below[0]); i++) {
		if (try_folder(library, (size_t)(slash - library), below[i], folder) == 0)
			return 0;
	}
	return try_folder(SHCA_OMPI_COMPONENTS, strlen(SHCA_OMPI_COMPONENTS), "", folder);
}

int shca_openmpi_environment(const char *library)
{
	char folder[PATH_MAX], list[PATH_MAX + 64];

	/* Open MPI 5 hands its list on to PMIx, which complains of components that aren't its own,
	 * unless PMIx has a list too. */
	if (*SHCA_PMIX_COMPONENTS && setenv(PMIX_PATH, SHCA_PMIX_COMPONENTS, 0))
		return -errno;
	if (getenv(OMPI_PATH) || find_components(library, folder))
		return 0;
	/* Open MPI stops at a folder that is missing. The user's own often is, so it comes last. */
	snprintf(list, sizeof(list), "SYSTEM_DEFAULT:%s:USER_DEFAULT", folder);
	return setenv(OMPI_PATH, list, 1) ? -errno : 0;
}
