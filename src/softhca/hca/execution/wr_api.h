/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wr_api.h - the extended posting interface, ibv_wr_*.
 */
#ifndef SHCA_WR_API_H
#define SHCA_WR_API_H

#include "hca/queues/queue_pair.h"

/* Fills in the function pointers of the interface. */
void shca_wr_api_init(struct shca_qp *qp);
/* Makes these functions fail from here on. */
void shca_wr_api_refuse(struct shca_qp *qp);

#endif
