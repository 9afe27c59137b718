/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.h - the files that /sys has for an InfiniBand adapter, one tree per virtual node, for
 * clients that read them.
 */
#ifndef SHCA_SYSFS_H
#define SHCA_SYSFS_H

#include "fabric.h"

/* Makes sys.0 ... in the directory of a fabric whose header is filled in. Returns 0 or -errno. */
int shca_sysfs_make(const struct shca_fabric_header *hdr);

#endif
