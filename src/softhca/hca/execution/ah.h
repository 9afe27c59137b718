/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ah.h - the private half of an address handle, which is user memory alone: nothing in the fabric
 * counts address handles.
 */
#ifndef SHCA_AH_H
#define SHCA_AH_H

#include "fabric/layout.h"

struct shca_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	int hca;       /* index of the destination HCA; -1 = the address leads nowhere */
	int multicast; /* 1: dgid is a multicast group */
};

#endif
