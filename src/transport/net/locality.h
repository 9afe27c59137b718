/* SPDX-License-Identifier: BSD-3-Clause */
/* How near a device is to the processors that this process may run on. */
#ifndef TQ_NET_LOCALITY_H
#define TQ_NET_LOCALITY_H

#include "net/net.h"

/* The distance between the device's NUMA node and the nearest one of this process, as the firmware
 * tells it (10: the same); where nothing is known, 10 too. */
int tq_locality(const struct ibv_device *device);

#endif
