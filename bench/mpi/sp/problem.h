/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * problem.h - the problem: the constants of the equations, the classes with their published norms,
 * and the solution that the forcing makes stationary.
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
#define DISSIPATION4 (0.25 * 1.0)              /* dssp: a quarter of the largest of dissipation2 */
extern const double dissipation2[AXES];        /* dx, dy, dz: the same for all variables */

struct problem {
	char class;
	int n; /* points in each direction */
	int steps;
	double dt;
	double residual[VARIABLES], error[VARIABLES]; /* after the last step */
};

/* Returns the class of a letter, or NULL. */
const struct problem *problem_find(const char *class);

/* Returns the floating-point operations of all steps, by the formula that is usual for SP. */
double problem_operations(const struct problem *problem);

/* Returns the largest relative difference from the published norms. */
double problem_difference(const struct problem *problem, const double *residual,
			  const double *error);
/* Returns true if the difference is within NAS's tolerance. */
bool problem_verified(double difference);

/* Computes the stationary solution at a point of the unit cube. */
void problem_exact(const double point[AXES], double value[VARIABLES]);

#endif
