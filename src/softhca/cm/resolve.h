/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.h - from an address to a port, and to a path there.
 */
#ifndef SHCA_CM_RESOLVE_H
#define SHCA_CM_RESOLVE_H

#include "cells.h"

/* Resolves an address, and reports the result as an event, when the node that has the address can
 * have answered. An identifier that isn't bound is bound to `source` first, which may have family
 * 0. Returns 0 or -errno. */
int shca_resolve_address(struct shca_fabric *fabric, struct shca_cm_id *id,
			 const union shca_cm_address *source,
			 const union shca_cm_address *destination, uint32_t timeout_ms);
/* Finds the path to the resolved address, and reports it, or that the answer takes too long.
 * Returns 0 or -errno. */
int shca_resolve_route(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t timeout_ms);
/* Takes a path to the resolved address from the program, and reports it at once. Returns 0 or
 * -errno. */
int shca_resolve_take_route(struct shca_fabric *fabric, struct shca_cm_id *id);
/* Takes the answer to a question about an address or a route, or gives up if there is none. */
void shca_resolve_due(struct shca_fabric *fabric, struct shca_cm_id *id);

#endif
