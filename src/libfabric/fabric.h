/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening fabrics, and the tables of what fabrics and domains can do. */
#ifndef TF_FABRIC_H
#define TF_FABRIC_H

#include <rdma/fabric.h>

int tf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
