/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces.h - the neighbours' layers of u around each cell: once a step, and nothing is computed
 * meanwhile.
 */
#ifndef SP_FACES_H
#define SP_FACES_H

#include "grid.h"

/* To the successor and to the predecessor of each axis. */
enum { FACES = 2 * AXES };

struct faces {
	size_t count[FACES]; /* doubles; as many come from there */
	double *send[FACES], *recv[FACES];
};

void faces_make(struct faces *f, const struct grid *g);
void faces_free(struct faces *f);
void faces_exchange(struct faces *f, struct grid *g);

#endif
