/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * problem.h - what is solved: the equations' constants, the classes with the norms that were
 * published for them, and the solution that the forcing makes stationary.
 */
#ifndef SP_PROBLEM_H
#define SP_PROBLEM_H

#include <stdbool.h>

/* Density, momentum in x, y and z, energy. */
enum { DENSITY, MOMENTUM, ENERGY = 4, VARIABLES };
enum axis { X, Y, Z, AXES };

#define GAMMA        1.4                       /* ratio of the specific heats, c1 */
#define GAMMA_1      (GAMMA - 1)               /* c2 */
#define VISCOSITY    0.1                       /* c3 c4 */
#define CONDUCTIVITY (GAMMA * 1.4 * VISCOSITY) /* c1 c5 c3 c4 */
#define DISSIPATION4 (0.25 * 1.0)              /* dssp: a quarter of the largest of DISSIPATION2 */
extern const double dissipation2[AXES];        /* dx, dy, dz: the same for all variables */

struct problem {
	char class;
	int n; /* points in each direction */
	int steps;
	double dt;
	double residual[VARIABLES], error[VARIABLES]; /* after the last step */
};

/* The class of that letter, or NULL. */
const struct problem *problem_find(const char *class);

/* Floating-point operations of all steps, by the formula with which SP's rate is always given. */
double problem_operations(const struct problem *p);

/* The largest relative difference from the published norms. */
double problem_difference(const struct problem *p, const double *residual, const double *error);
bool problem_verified(double difference);

/* The stationary solution at a point of the unit cube. */
void problem_exact(const double point[AXES], double value[VARIABLES]);

#endif
