/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.h - says what holds a virtual clock up.
 */
#ifndef SHCA_STALL_H
#define SHCA_STALL_H

#include "fabric/fabric.h"

/* State of the last look. */
struct shca_stall {
	int err;                    /* descriptor of the stream for what is said */
	uint64_t looked;            /* ns of real time */
	uint64_t since;             /* when what holds the clock up began to */
	uint64_t now, paced, given; /* of the clock: the time, and its counters */
	uint32_t question;          /* number of the last question whether the job is quiet */
	bool busy;                  /* there is no answer, and it was asked before the last look */
	uint32_t actor;             /* that holds the clock up, or SHCA_NO_ACTOR */
	uint64_t turns;             /* that it has had */
	bool said;
	uint64_t stands_since; /* when the time last changed */
	bool said_round;       /* that threads take turns since */
};

/* Looks whether something has held the clock up for long (--clock-stall), and says so, once. */
void shca_stall_look(const struct shca_fabric *fabric, struct shca_stall *stall);

#endif
