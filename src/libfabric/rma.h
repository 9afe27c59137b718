/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes of peers' memory, by the adapter. */
#ifndef TF_RMA_H
#define TF_RMA_H

#include <rdma/fi_rma.h>

/* An endpoint's functions. Each operation has at most TF_IOV_LIMIT pieces on either side. */
extern struct fi_ops_rma tf_rma_ops;

#endif
