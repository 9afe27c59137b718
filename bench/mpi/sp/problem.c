/* SPDX-License-Identifier: BSD-3-Clause */
/* problem.c - see problem.h. */
#include "problem.h"

#include <math.h>
#include <stddef.h>

#define TOLERANCE 1e-8

const double dissipation2[AXES] = {0.75, 0.75, 1.0};

static const struct problem problems[] = {
	{'S',
	 12,
	 100,
	 0.015,
	 {2.7470315451339479e-2, 1.0360746705285417e-2, 1.6235745065095532e-2,
	  1.5840557224455615e-2, 3.4849040609362460e-2},
	 {2.7289258557377227e-5, 1.0364446640837285e-5, 1.6154798287166471e-5,
	  1.5750704994480102e-5, 3.4177666183390531e-5}},
	{'W',
	 36,
	 400,
	 0.0015,
	 {0.1893253733584e-2, 0.1717075447775e-3, 0.2778153350936e-3, 0.2887475409984e-3,
	  0.3143611161242e-2},
	 {0.7542088599534e-4, 0.6512852253086e-5, 0.1049092285688e-4, 0.1128838671535e-4,
	  0.1212845639773e-3}},
	{'A',
	 64,
	 400,
	 0.0015,
	 {2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179,
	  2.1292113035138280},
	 {1.0900140297820550e-4, 3.7343951769282091e-5, 5.0092785406541633e-5,
	  4.7671093939528255e-5, 1.3621613399213001e-4}},
	{'B',
	 102,
	 400,
	 0.001,
	 {69.03293579998, 30.95134488084, 41.03336647017, 38.64769009604, 56.43482272596},
	 {0.9810006190188e-2, 0.1022827905670e-2, 0.1720597911692e-2, 0.1694479428231e-2,
	  0.1847456263981e-1}},
	{'C',
	 162,
	 400,
	 0.00067,
	 {588.1691581829, 245.4417603569, 329.3829191851, 308.1924971891, 459.7223799176},
	 {0.2598120500183, 0.02590888922315, 0.05132886416320, 0.04806073419454, 0.5483377491301}},
};

/* The coefficients of a polynomial of degree 4 in each coordinate: the constant, then those of x, y
 * and z, of their squares, of their cubes, and of their fourth powers. */
static const double coefficient[VARIABLES][1 + 4 * AXES] = {
	{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
	{1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
	{2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
	{2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
	{5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

const struct problem *problem_find(const char *class)
{
	for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
		if (class[0] == problems[i].class && !class[1])
			return &problems[i];
	return NULL;
}

double problem_operations(const struct problem *problem)
{
	double n = problem->n;

	return problem->steps * (((881.174 * n - 4683.91) * n + 11484.5) * n - 19272.4);
}

double problem_difference(const struct problem *problem, const double *residual,
			  const double *error)
{
	double most = 0;

	for (int m = 0; m < VARIABLES; m++) {
		double r = fabs(residual[m] / problem->residual[m] - 1);
		double e = fabs(error[m] / problem->error[m] - 1);

		if (isnan(r) || isnan(e))
			return NAN;
		most = fmax(most, fmax(r, e));
	}
	return most;
}

bool problem_verified(double difference)
{
	return difference <= TOLERANCE;
}

void problem_exact(const double point[AXES], double value[VARIABLES])
{
	for (int m = 0; m < VARIABLES; m++) {
		value[m] = coefficient[m][0];
		for (int a = 0; a < AXES; a++) {
			const double *c = &coefficient[m][1 + a], x = point[a];

			value[m] +=
				x * (c[0] + x * (c[AXES] + x * (c[2 * AXES] + x * c[3 * AXES])));
		}
	}
}
