/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of messages with tags. */
#ifndef TF_TAGGED_H
#define TF_TAGGED_H

#include <rdma/fi_tagged.h>

extern struct fi_ops_tagged tf_tagged_ops;

#endif
