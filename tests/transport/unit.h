/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the protocol without a network share. */
#ifndef TQ_UNIT_H
#define TQ_UNIT_H

#include <stdio.h>

#include "proto/net_ops.h"

static const struct tq_net_limits limits = {.max_inline = 64,
					    .eager_max = 4096,
					    .max_direct = 65536,
					    .max_send = 65536,
					    .max_sge = 1,
					    .max_sge_rd = 1,
					    .max_srq_sge = 1,
					    .srq_depth = 16};

static int failed;

static void check(const char *group, const char *name, int ok)
{
	printf("%sok %s: %s\n", ok ? "" : "not ", group, name);
	failed |= !ok;
}

#endif
