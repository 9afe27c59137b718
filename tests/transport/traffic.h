/* SPDX-License-Identifier: BSD-3-Clause */
/* Random configurations and programs. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "world.h"

struct traffic_options {
	bool breaks; /* connections fail */
	bool bits;   /* all contexts have match bits */
};

/* Makes a world with random network, parameters and program. */
struct world *traffic_world(uint64_t seed, const struct traffic_options *opt);

#endif
