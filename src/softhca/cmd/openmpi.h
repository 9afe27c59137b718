/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * openmpi.h - where Open MPI finds the project's components.
 */
#ifndef SHCA_CMD_OPENMPI_H
#define SHCA_CMD_OPENMPI_H

/*
 * Names the folder with the components in Open MPI's variable, if there is one by the library's
 * path or where they are installed, and the user has not set that variable. For Open MPI 5, also
 * gives PMIx a search path, unless it has one. Returns 0 or -errno.
 */
int shca_openmpi_environment(const char *library);

#endif
