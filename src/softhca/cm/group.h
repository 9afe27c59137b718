/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h - multicast groups that an identifier joins by an address.
 */
#ifndef SHCA_CM_GROUP_H
#define SHCA_CM_GROUP_H

#include "cells.h"

/* Joins, and reports that as an event. librdmacm attaches the QP. Returns the number of the
 * membership, or -errno. */
int64_t shca_group_join(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t uid,
			const union shca_cm_address *address);

#endif
