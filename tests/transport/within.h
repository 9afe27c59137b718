/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameter intranode of a test's endpoint is $TEST_INTRANODE. Without that variable most tests
 * take `hca`, because most tests are about the adapter. With `auto` all long messages go
 * through the adapter, so that tests of RDMA and queues have these within a node, too.
 */
#ifndef TEST_WITHIN_H
#define TEST_WITHIN_H

#include <tupleq/tupleq.h>

#include "../expect.h"

static inline void within_set(struct tq_params *params, const char *intranode)
{
	char why[200];

	t_true(!tq_param_set(params, "intranode", intranode ? intranode : "hca", why, sizeof(why)),
	       "%s", why);
	if (!intranode)
		return;
	t_true(!tq_param_set(params, "intranode_copy", "0", why, sizeof(why)), "%s", why);
	t_true(!tq_param_set(params, "intranode_queue", "0", why, sizeof(why)), "%s", why);
}

#endif
