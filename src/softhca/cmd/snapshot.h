/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot.h - what is in a fabric, as JSON. Read without locks while others write: an entry that
 * changes meanwhile is left out, a number may be older than its neighbour.
 */
#ifndef SHCA_SNAPSHOT_H
#define SHCA_SNAPSHOT_H

#include <jansson.h>

#include "fabric/fabric.h"

/* The key of each kind's array in what shca_snapshot_objects returns: "qps", "srqs", ... */
extern const char *const shca_snapshot_keys[SHCA_KINDS];

/* name, pid, nodes, devices, processes, age, command. */
json_t *shca_snapshot_fabric(const struct shca_fabric *f);
/* slot, pid, comm, node, pinned, arena. */
json_t *shca_snapshot_procs(const struct shca_fabric *f);
/* Virtual time: threads and adapters; and the clock itself, of a fabric that has one. */
json_t *shca_snapshot_actors(const struct shca_fabric *f);
json_t *shca_snapshot_clock(const struct shca_fabric *f);
/* Which HCA: name, node, device, lid, guid. */
json_t *shca_snapshot_hca(const struct shca_hca *hca);
/* An array of the HCA's live objects of a kind. */
json_t *shca_snapshot_objects(const struct shca_fabric *f, const struct shca_hca *hca,
			      enum shca_kind kind);

#endif
