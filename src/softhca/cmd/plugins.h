/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugins.h - where Open MPI and libfabric find what the project installs for them.
 */
#ifndef SHCA_CMD_PLUGINS_H
#define SHCA_CMD_PLUGINS_H

/*
 * Names the folder with Open MPI's components, and that with the provider of libfabric, in the
 * variables of Open MPI and libfabric. Each of them only if there is such a folder by the library's
 * path or where the plug-ins are installed, and the user has not set that variable. For Open MPI 5,
 * also gives PMIx a search path, unless it has one. Returns 0 or -errno.
 */
int shca_plugins_environment(const char *library);

#endif
