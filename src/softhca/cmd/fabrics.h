/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics.h - the fabrics of this user: making one, finding one, and removing what a crash left.
 *
 * A fabric's launcher and monitor hold a flock on its directory, which the kernel drops when both
 * have ended, in whatever way. A fabric is dead if nobody holds that lock and no process in its
 * table is running. Making a fabric and removing dead ones exclude each other by a flock on the
 * folder of all fabrics, so that a fabric that is being made is never taken for a dead one.
 */
#ifndef SHCA_FABRICS_H
#define SHCA_FABRICS_H

#include <stdbool.h>

#include "fabric/fabric.h"

#define SHCA_DIR_LEN 108 /* as in struct shca_fabric_header */

struct shca_listing {
	char dir[SHCA_DIR_LEN];
	bool held; /* its launcher or monitor runs */
};

struct shca_listings {
	struct shca_listing *list;
	size_t n;
};

/* Makes a fabric under a name of its own and locks it. Returns the descriptor that holds the
 * lock, or -errno with a sentence in err. The fabric lives as long as a process keeps a copy of
 * the descriptor. */
int shca_fabrics_create(const struct shca_config *config, const char *command, char *dir,
			size_t len, char *err, size_t errlen);
/* Removes the remains of dead fabrics, and lists the others by name. Returns 0 or -errno. */
int shca_fabrics_list(struct shca_listings *out);
void shca_fabrics_free(struct shca_listings *listings);
/*
 * Stores the directory of the fabric that a user means: by name, by the pid of its launcher or of
 * one of its processes; NULL: the one that this process is in, else the only one. Returns 0, or
 * -errno (-ENOENT: there is no such fabric) with a sentence in err.
 */
int shca_fabrics_pick(const char *which, char *dir, size_t len, char *err, size_t errlen);
/* Returns the last part of dir. */
const char *shca_fabrics_name(const char *dir);
/* Returns the number of processes that are attached and run. */
unsigned shca_fabrics_processes(const struct shca_fabric *fabric);

#endif
