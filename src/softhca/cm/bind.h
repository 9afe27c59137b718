/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bind.h - service IDs: which identifier has a port of a node, and which one listens there.
 */
#ifndef SHCA_CM_BIND_H
#define SHCA_CM_BIND_H

#include "cells.h"

/* Binds an idle identifier to an address, and to a port, which the kernel chooses if the address
 * has none. Returns 0 or -errno. */
int shca_bind_address(struct shca_fabric *fabric, struct shca_cm_id *id,
		      const union shca_cm_address *address);
/* Makes a bound identifier listen, unless another one that shares its port forbids that. Returns 0
 * or -errno. */
int shca_bind_listen(struct shca_fabric *fabric, struct shca_cm_id *id, int32_t backlog);
/* Returns the identifier that listens where `from` wants to connect to, or NULL. */
struct shca_cm_id *shca_bind_listener(struct shca_fabric *fabric, const struct shca_cm_id *from);

#endif
