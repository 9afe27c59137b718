/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.h - RDMA_OPTION_*.
 */
#ifndef SHCA_CM_OPTION_H
#define SHCA_CM_OPTION_H

#include "cells.h"

/* Sets an option of an identifier; the value has cmd->optlen bytes. Returns 0 or -errno. */
int shca_option_set(struct shca_fabric *fabric, struct shca_cm_id *id,
		    const struct rdma_ucm_set_option *cmd, const void *value);

#endif
