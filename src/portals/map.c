/* SPDX-License-Identifier: BSD-3-Clause */
#include "map.h"

#include <stdlib.h>
#include <string.h>

#include "endpoint.h"
#include "lib.h"
#include "ni.h"
#include "peer.h"

/* A process's first rank. */
struct rank {
	struct p4_peer_key key;
	ptl_rank_t rank;
	UT_hash_handle hh;
};

struct p4_map {
	ptl_size_t size;
	ptl_process_t *physical;       /* by rank */
	struct rank *all, *by_process; /* array by rank, and hash of its elements by key */
};

void p4_map_destroy(struct p4_map *map)
{
	if (!map)
		return;
	HASH_CLEAR(hh, map->by_process);
	free(map->all);
	free(map->physical);
	free(map);
}

static struct p4_map *make(ptl_size_t size, const ptl_process_t *physical)
{
	struct p4_map *map = calloc(1, sizeof(*map));
	struct rank *rank, *other;

	if (!map)
		return NULL;
	map->size = size;
	map->physical = malloc(size * sizeof(*physical));
	map->all = calloc(size, sizeof(*map->all));
	if (!map->physical || !map->all) {
		p4_map_destroy(map);
		return NULL;
	}
	memcpy(map->physical, physical, size * sizeof(*physical));
	for (ptl_size_t i = 0; i < size; i++) {
		rank = &map->all[i];
		rank->key = (struct p4_peer_key){physical[i].phys.nid, physical[i].phys.pid};
		rank->rank = (ptl_rank_t)i;
		HASH_FIND(hh, map->by_process, &rank->key, sizeof(rank->key), other);
		if (!other)
			HASH_ADD(hh, map->by_process, key, sizeof(rank->key), rank);
	}
	return map;
}

struct p4_peer *p4_map_peer(const struct p4_ni *ni, ptl_process_t id, int *rc)
{
	struct p4_peer *peer;

	*rc = PTL_ARG_INVALID;
	if (p4_ni_is_logical(ni)) {
		if (!ni->map || id.rank >= ni->map->size)
			return NULL;
		id = ni->map->physical[id.rank];
	}
	if (id.phys.nid == PTL_NID_ANY || id.phys.pid > PTL_PID_MAX)
		return NULL;
	peer = p4_peer_get(id.phys.nid, id.phys.pid);
	*rc = peer ? PTL_OK : PTL_NO_SPACE;
	return peer;
}

ptl_process_t p4_map_id(const struct p4_ni *ni, uint32_t nid, uint32_t pid)
{
	ptl_process_t id = {.phys = {nid, pid}};
	struct p4_peer_key key = {nid, pid};
	struct rank *rank = NULL;

	if (!p4_ni_is_logical(ni))
		return id;
	if (ni->map)
		HASH_FIND(hh, ni->map->by_process, &key, sizeof(key), rank);
	id = (ptl_process_t){.rank = rank ? rank->rank : PTL_RANK_ANY};
	return id;
}

bool p4_map_is_any(const struct p4_ni *ni, ptl_process_t id)
{
	if (p4_ni_is_logical(ni))
		return id.rank == PTL_RANK_ANY;
	return id.phys.nid == PTL_NID_ANY || id.phys.pid == PTL_PID_ANY;
}

bool p4_map_fits(const struct p4_ni *ni, ptl_process_t id, uint32_t nid, uint32_t pid)
{
	if (p4_ni_is_logical(ni)) {
		if (id.rank == PTL_RANK_ANY)
			return true;
		if (!ni->map || id.rank >= ni->map->size)
			return false;
		id = ni->map->physical[id.rank];
	}
	return (id.phys.nid == PTL_NID_ANY || id.phys.nid == nid) &&
	       (id.phys.pid == PTL_PID_ANY || id.phys.pid == pid);
}

/* ---- the user's functions ---- */

/* The most processes of a map whose addresses are looked up before they are needed. A choice: the
 * first message to each of them waits for no look-up; in larger jobs most processes never talk to
 * each other, and all would ask all at once. */
#define EARLY_MAX 64

/* Finds the processes of a small map, so that the first messages needn't wait for that. */
static void look_up_all(ptl_handle_ni_t ni_handle, ptl_size_t size, const ptl_process_t *mapping)
{
	struct p4_peer *peer;

	for (ptl_size_t i = 0; size <= EARLY_MAX && i < size; i++) {
		p4_lock();
		peer = p4_ni_of(ni_handle) ? p4_peer_get(mapping[i].phys.nid, mapping[i].phys.pid)
					   : NULL;
		p4_unlock();
		if (peer)
			p4_peer_look_up(peer);
	}
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping)
{
	struct p4_ni *ni;
	struct p4_map *map;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !p4_ni_is_logical(ni) || !map_size || !mapping || map_size >= PTL_RANK_ANY)
		goto unlock;
	rc = PTL_IGNORED;
	if (ni->map)
		goto unlock;
	rc = PTL_NO_SPACE;
	map = make(map_size, mapping);
	if (!map)
		goto unlock;
	ni->map = map;
	rc = PTL_OK;
unlock:
	p4_unlock();
	if (!rc)
		look_up_all(ni_handle, map_size, mapping);
	return rc;
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
	      ptl_size_t *actual_map_size)
{
	struct p4_ni *ni;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !p4_ni_is_logical(ni) || (map_size && !mapping) ||
	    (!map_size && !actual_map_size))
		goto unlock;
	rc = PTL_NO_SPACE;
	if (!ni->map)
		goto unlock;
	if (mapping)
		memcpy(mapping, ni->map->physical,
		       (map_size < ni->map->size ? map_size : ni->map->size) * sizeof(*mapping));
	if (actual_map_size)
		*actual_map_size = ni->map->size;
	rc = PTL_OK;
unlock:
	p4_unlock();
	return rc;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
	struct tq_locator locator = p4_endpoint_locator();
	struct p4_ni *ni;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	/* A rank is known from PtlSetMap() on. */
	if (ni && id && (!p4_ni_is_logical(ni) || ni->map)) {
		*id = p4_map_id(ni, locator.port, locator.number);
		rc = PTL_OK;
	}
	p4_unlock();
	return rc;
}
