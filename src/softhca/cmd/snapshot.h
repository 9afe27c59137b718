/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot.h - the contents of a fabric as JSON. They are read without locks while others write: an
 * object that changes hands meanwhile is left out, and a number may be older than its neighbour.
 */
#ifndef SHCA_SNAPSHOT_H
#define SHCA_SNAPSHOT_H

#include <jansson.h>

#include "fabric/fabric.h"

/* Keys of the arrays that shca_snapshot_objects() returns, by kind: "qps", "srqs", ... */
extern const char *const shca_snapshot_keys[SHCA_KINDS];

/* Returns an object with name, dir, pid, nodes, devices, processes, age and command. */
json_t *shca_snapshot_fabric(const struct shca_fabric *fabric);
/* Returns an array of the attached processes: slot, pid, comm, node, pinned and arena. */
json_t *shca_snapshot_procs(const struct shca_fabric *fabric);
/* Returns an array of the identifiers of librdmacm's programs: pid, comm, node, id, space, state,
 * source and destination. */
json_t *shca_snapshot_connections(const struct shca_fabric *fabric);
/* Returns how many channels, identifiers, memberships and events of librdmacm there are. */
json_t *shca_snapshot_cells(const struct shca_fabric *fabric);
/* Return threads and adapters, and the clock itself, of a fabric with a virtual clock. */
json_t *shca_snapshot_actors(const struct shca_fabric *fabric);
json_t *shca_snapshot_clock(const struct shca_fabric *fabric);
/* Returns the identity of an HCA: name, node, device, lid, guid. */
json_t *shca_snapshot_hca(const struct shca_hca *hca);
/* Returns an array of the HCA's live objects of a kind. */
json_t *shca_snapshot_objects(const struct shca_fabric *fabric, const struct shca_hca *hca,
			      enum shca_kind kind);

#endif
