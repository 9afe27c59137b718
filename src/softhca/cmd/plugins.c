/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugins.c - tells Open MPI and libfabric where the project's components and its provider are, so
 * that mpirun and programs need no option.
 */
#define _GNU_SOURCE 1
#include "plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OMPI_PATH     "OMPI_MCA_mca_base_component_path"
#define PMIX_PATH     "PMIX_MCA_mca_base_component_path"
#define PROVIDER_PATH "FI_PROVIDER_PATH"

/* A file that another project loads. */
struct plugin {
	const char *file;
	/* Its folder, from that of the library: in a build tree, and installed. */
	const char *below[2];
	/* The folder of which the build was told. */
	const char *configured;
};

static const struct plugin component = {
	"mca_pml_tupleq.so", {"/../../../ompi-btl/.libs", "/../openmpi"}, SHCA_OMPI_COMPONENTS};
static const struct plugin provider = {
	"libtupleq-fi.so", {"/../../libfabric/.libs", "/../libfabric"}, SHCA_FI_PROVIDERS};

/* Stores DIR/BELOW, where DIR has `len` characters, in `folder`. Returns -ENOENT if the file isn't
 * there. */
static int try_folder(const char *file, const char *dir, size_t len, const char *below,
		      char *folder)
{
	char name[PATH_MAX], path[PATH_MAX + 64];

	if (snprintf(name, sizeof(name), "%.*s%s", (int)len, dir, below) >= (int)sizeof(name) ||
	    !realpath(name, folder))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return access(path, R_OK) ? -ENOENT : 0;
}

static int find(const struct plugin *plugin, const char *library, char *folder)
{
	const char *slash = strrchr(library, '/');

	for (size_t i = 0; slash && i < sizeof(plugin->below) / sizeof(plugin->below[0]); i++) {
		if (try_folder(plugin->file, library, (size_t)(slash - library), plugin->below[i],
			       folder) == 0)
			return 0;
	}
	return try_folder(plugin->file, plugin->configured, strlen(plugin->configured), "", folder);
}

static int openmpi_environment(const char *library)
{
	char folder[PATH_MAX], list[PATH_MAX + 64];

	/* Open MPI 5 hands its list on to PMIx, which complains of components that aren't its own,
	 * unless PMIx has a list too. */
	if (*SHCA_PMIX_COMPONENTS && setenv(PMIX_PATH, SHCA_PMIX_COMPONENTS, 0))
		return -errno;
	if (getenv(OMPI_PATH) || find(&component, library, folder))
		return 0;
	/* Open MPI stops at a folder that is missing. The user's own often is, so it comes last. */
	snprintf(list, sizeof(list), "SYSTEM_DEFAULT:%s:USER_DEFAULT", folder);
	return setenv(OMPI_PATH, list, 1) ? -errno : 0;
}

int shca_plugins_environment(const char *library)
{
	char folder[PATH_MAX];
	int rc = openmpi_environment(library);

	if (rc || getenv(PROVIDER_PATH) || find(&provider, library, folder))
		return rc;
	return setenv(PROVIDER_PATH, folder, 1) ? -errno : 0;
}
