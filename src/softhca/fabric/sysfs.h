/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.h - what /sys shows of an InfiniBand adapter, one tree per virtual node, for clients that
 * read it there.
 */
#ifndef SHCA_SYSFS_H
#define SHCA_SYSFS_H

#include "fabric.h"

/* Makes DIR/sys.0 ... of a fabric whose header is filled in. 0 or -errno. */
int shca_sysfs_make(const struct shca_fabric_header *hdr);

#endif
