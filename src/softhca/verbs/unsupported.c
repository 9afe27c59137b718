/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unsupported.c - functions that are not supported. They must fail here, because the real library
 * would take our objects for its own. Flows, work queues and
 * counters need no function here: the context leaves their operations NULL.
 */
#include "verbs.h"

#include <errno.h>

static void *refuse(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return refuse();
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return EOPNOTSUPP;
}
