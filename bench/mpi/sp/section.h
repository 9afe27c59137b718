/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * section.h - the computing between messages, in sections. Their CPU time can be measured, and
 * slept away instead of computing: then a run in virtual time has no noise.
 */
#ifndef SP_SECTION_H
#define SP_SECTION_H

#include <stdbool.h>
#include <stddef.h>

enum section {
	SECTION_PACK,   /* a point is a double of the message */
	SECTION_UNPACK, /* a point is a double of the message */
	SECTION_RHS,
	SECTION_BEGIN, /* waves_begin() */
	SECTION_MATRIX,
	SECTION_ELIMINATE,  /* with the copies of its messages */
	SECTION_SUBSTITUTE, /* with the copies of its messages */
	SECTION_NEXT,       /* waves_next() */
	SECTION_ADD,        /* of the increment */
	SECTIONS
};

/* Begins a section that computes `points` points. Returns false if the caller must not compute,
 * because the time was slept. If true, the caller computes, and then calls section_end(). */
bool section_begin(enum section section, size_t points);
void section_end(void);

/* Starts to measure the sections, from zero. */
void section_measure(void);
/* Prints the nanoseconds a point of each section so far, as a JSON object. */
void section_print(void);
/* Has sections slept away from now on. `list` has their nanoseconds a point, separated by commas,
 * in the order of enum section. Returns false if the list is malformed. */
bool section_replay(const char *list);
/* Lets each sleep be longer or shorter by up to that share, at random, differently on each rank. */
void section_noise(double share, int rank);
/* Returns true if sections are slept away. */
bool section_replays(void);

#endif
