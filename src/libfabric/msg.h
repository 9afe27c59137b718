/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of messages without tags. */
#ifndef TF_MSG_H
#define TF_MSG_H

#include <rdma/fi_endpoint.h>

extern struct fi_ops_msg tf_msg_ops;

#endif
