/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical ids: ranks of processes, on interfaces with PTL_NI_LOGICAL. All with the lock. */
#ifndef P4_MAP_H
#define P4_MAP_H

#include <stdbool.h>

#include <portals4.h>

struct p4_ni;
struct p4_peer;
struct p4_map;

void p4_map_destroy(struct p4_map *map);
/* Returns the process that an id names on the interface; NULL if it names none (*rc is then
 * PTL_ARG_INVALID) or without memory (PTL_NO_SPACE). */
struct p4_peer *p4_map_peer(const struct p4_ni *ni, ptl_process_t id, int *rc);
/* Returns the id of a process on the interface. */
ptl_process_t p4_map_id(const struct p4_ni *ni, uint32_t nid, uint32_t pid);
/* Returns true if the id stands for more than one process. */
bool p4_map_is_any(const struct p4_ni *ni, ptl_process_t id);
/* Returns true if the process may be one that the id stands for. */
bool p4_map_fits(const struct p4_ni *ni, ptl_process_t id, uint32_t nid, uint32_t pid);

#endif
