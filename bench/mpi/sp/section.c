/* SPDX-License-Identifier: BSD-3-Clause */
/* section.c - see section.h. */
#include "section.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const names[SECTIONS] = {
	[SECTION_PACK] = "pack",
	[SECTION_UNPACK] = "unpack",
	[SECTION_RHS] = "rhs",
	[SECTION_BEGIN] = "begin",
	[SECTION_MATRIX] = "matrix",
	[SECTION_ELIMINATE] = "eliminate",
	[SECTION_SUBSTITUTE] = "substitute",
	[SECTION_NEXT] = "next",
	[SECTION_ADD] = "add",
};

static enum { COMPUTE, MEASURE, REPLAY } mode;
static enum section current;
static double begun, seconds[SECTIONS], points_of[SECTIONS];
static double ns_a_point[SECTIONS];
static double noise;
static unsigned short seed[3];

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_for(double ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1e9)};

	time.tv_nsec = (long)(ns - 1e9 * (double)time.tv_sec);
	while (nanosleep(&time, &time))
		;
}

bool section_begin(enum section section, size_t points)
{
	if (mode == REPLAY) {
		sleep_for(ns_a_point[section] * (double)points *
			  (1 + noise * (2 * erand48(seed) - 1)));
		return false;
	}
	current = section;
	points_of[section] += (double)points;
	if (mode == MEASURE)
		begun = cpu_seconds();
	return true;
}

void section_end(void)
{
	if (mode == MEASURE)
		seconds[current] += cpu_seconds() - begun;
}

void section_measure(void)
{
	mode = MEASURE;
	for (int s = 0; s < SECTIONS; s++)
		seconds[s] = points_of[s] = 0;
}

void section_print(void)
{
	for (int s = 0; s < SECTIONS; s++)
		printf("%s\"%s\":%.4f", s ? "," : "{", names[s],
		       points_of[s] > 0 ? 1e9 * seconds[s] / points_of[s] : 0);
	printf("}");
}

bool section_replay(const char *list)
{
	const char *at = list;

	for (int s = 0; s < SECTIONS; s++) {
		char *end;

		ns_a_point[s] = strtod(at, &end);
		if (end == at || !(ns_a_point[s] >= 0 && ns_a_point[s] <= 1e6) ||
		    *end != (s < SECTIONS - 1 ? ',' : 0))
			return false;
		at = end + 1;
	}
	mode = REPLAY;
	return true;
}

void section_noise(double share, int rank)
{
	noise = share;
	seed[0] = (unsigned short)rank;
}

bool section_replays(void)
{
	return mode == REPLAY;
}
