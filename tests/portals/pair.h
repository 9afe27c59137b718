/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes with an interface each: child 0 is the initiator, child 1 the target. */
#ifndef PAIR_H
#define PAIR_H

#include "portals.h"

#define PAIR_LONG     (1 << 20)
#define PAIR_MATCHING (PTL_NI_MATCHING | PTL_NI_PHYSICAL)

/* Data of a process, and room for those of the other one. */
extern char pair_from[PAIR_LONG], pair_to[PAIR_LONG];
/* The nodes of the children. */
extern unsigned pair_nodes[2];

/* Reads the arguments of a test: with "alone" both children are on one node. */
void pair_arguments(int argc, char **argv);
/* Opens an interface, and tells the other child. Returns the other's id. */
ptl_process_t pair_meet(struct p_ni *ni, unsigned me, unsigned options, unsigned pt_options,
			ptl_size_t events);
/* Closes an interface after the other child is done, too. */
void pair_part(struct p_ni *ni);

#endif
