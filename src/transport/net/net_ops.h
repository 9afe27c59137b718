/* SPDX-License-Identifier: BSD-3-Clause */
/* The network as the protocol sees it. */
#ifndef TQ_NET_NET_OPS_H
#define TQ_NET_NET_OPS_H

#include "proto/common/net_ops.h"

extern const struct tq_net_ops tq_net_ops;

#endif
