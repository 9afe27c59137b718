/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a port in a struct fi_info. */
#ifndef TF_NIC_H
#define TF_NIC_H

#include <rdma/fabric.h>
#include <tupleq/tupleq.h>

/* Returns a description, which fi_freeinfo() frees; NULL without memory. */
struct fid_nic *tf_nic_new(const struct tq_port *port);

#endif
