/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.h - says what holds a virtual clock up.
 */
#ifndef SHCA_STALL_H
#define SHCA_STALL_H

#include "fabric/fabric.h"

/* State of the last look. */
struct shca_stall {
	int err;                    /* descriptor to which sentences are written */
	uint64_t looked;            /* ns of real time */
	uint64_t since;             /* real time (ns) since which this actor holds the clock up */
	uint64_t now, paced, given; /* the clock's time, and its counters paced and turns */
	uint32_t question;          /* number of the last question whether the job is quiet */
	bool busy;                  /* there is no answer, and it was asked before the last look */
	uint32_t actor;             /* the actor that holds the clock up, or SHCA_NO_ACTOR */
	uint64_t turns;             /* turns that this actor has had */
	bool said;
	uint64_t stands_since; /* real time (ns) at which virtual time last changed */
	bool said_round;       /* the sentence about threads that take turns was written */
};

/* Looks whether something has held the clock up for long (--clock-stall), and says so, once. */
void shca_stall_look(const struct shca_fabric *fabric, struct shca_stall *stall);

#endif
