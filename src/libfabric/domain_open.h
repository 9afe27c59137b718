/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing domains. */
#ifndef TF_DOMAIN_OPEN_H
#define TF_DOMAIN_OPEN_H

#include <rdma/fi_domain.h>

struct tf_fabric;

/* Opens a domain; its table of functions is the caller's to set. */
int tf_domain_open(struct tf_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		   void *context);

#endif
