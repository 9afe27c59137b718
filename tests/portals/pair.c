/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <string.h>

char pair_from[PAIR_LONG], pair_to[PAIR_LONG];
unsigned pair_nodes[2] = {0, 1};

void pair_arguments(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "alone"))
		pair_nodes[1] = 0;
}

ptl_process_t pair_meet(struct p_ni *ni, unsigned me, unsigned options, unsigned pt_options,
			ptl_size_t events)
{
	*ni = p_open(options, pt_options, events);
	p_publish(ni);
	for (size_t i = 0; i < PAIR_LONG; i++)
		pair_from[i] = (char)(i * 7 + me);
	return p_id_of(1 - me);
}

void pair_part(struct p_ni *ni)
{
	procs_barrier();
	p_close(ni);
}
