/* SPDX-License-Identifier: BSD-3-Clause */
/* How near a device is to the processors that this process may run on. */
#ifndef TQ_NET_LOCALITY_H
#define TQ_NET_LOCALITY_H

#include "net/adapter/address.h"

/* Returns the distance between the device's NUMA node and the nearest one of this process, as the
 * firmware gives it (10: both are one node). Where nothing is known, returns 10, too. */
__attribute__((noinline)) int tq_locality(const struct ibv_device *device);

#endif
