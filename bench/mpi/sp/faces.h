/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces.h - the exchange of the layers of u around each cell with its neighbours, once a step.
 * Nothing is computed meanwhile.
 */
#ifndef SP_FACES_H
#define SP_FACES_H

#include "grid.h"

/* Each axis has a face towards the successor and one towards the predecessor. */
enum { FACES = 2 * AXES };

struct faces {
	size_t count[FACES]; /* doubles that are sent, and as many that are received */
	double *send[FACES], *recv[FACES];
};

void faces_make(struct faces *faces, const struct grid *grid);
void faces_free(struct faces *faces);
/* Exchanges all faces at once. */
void faces_exchange(struct faces *faces, struct grid *grid);
/* Exchanges one face after the other: each message waits for the one before. */
void faces_exchange_in_turn(struct faces *faces, struct grid *grid);

#endif
