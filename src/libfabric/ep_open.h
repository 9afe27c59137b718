/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of endpoints: opening, binding, enabling, options, closing. */
#ifndef TF_EP_OPEN_H
#define TF_EP_OPEN_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

int tf_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

#endif
