/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure.h - the measurements of prices. Each does its work once, on an end that is connected, and
 * stores its prices in microseconds. A measurement that fails returns false and leaves a sentence
 * in the end.
 */
#ifndef TUPLEQ_CHECK_MEASURE_H
#define TUPLEQ_CHECK_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "end.h"

/* Bytes of the messages that are posted. */
#define MEASURE_MESSAGE 8u

/* Polls of an empty CQ, of which a sample is the mean. Few, because a thread that does nothing else
 * waits, and in softhca's virtual time is parked. */
#define MEASURE_POLLS 3u

typedef bool measure_fn(struct end *end, size_t bytes, double *us);

/* Returns the time in microseconds. */
double measure_now(void);

/* Making and destroying an SRQ, an initiator QP, an opened target QP; the three changes of a QP's
 * state; registering and deregistering `bytes` bytes. */
measure_fn measure_srq, measure_qp, measure_open, measure_modify, measure_registration;

/* Reading the clock, which is a part of each price. */
measure_fn measure_clock;

/* Posting a send, one with inline data, one of a list, a receive; a hit and a miss of a poll. */
measure_fn measure_post, measure_inline, measure_list, measure_receive, measure_poll;

/* Arming a CQ, and the times until the event and until the completion; the pause of a message that
 * finds no receive. */
measure_fn measure_event, measure_pause;

/* A message of `bytes` bytes, at most END_SLOTS times END_SLOT, among others that follow at once.
 */
measure_fn measure_stream;

/* A message to the next of many SRQs, which are made before, and destroyed afterwards. */
measure_fn measure_crowd;
bool measure_crowd_begin(struct end *end, unsigned n);
void measure_crowd_end(void);

#endif
