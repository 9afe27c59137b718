/* SPDX-License-Identifier: BSD-3-Clause */
/* Poll sets: queues and counters that are looked at together. */
#ifndef TF_POLL_SET_H
#define TF_POLL_SET_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

int tf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);

#endif
