/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the target: acknowledgements, and replies with data. */
#ifndef P4_RESPONSE_H
#define P4_RESPONSE_H

#include <stdbool.h>

#include <tupleq/tupleq.h>

struct p4_arrival;

/*
 * Answers a message: with the data in `buf`, or, if that is NULL, without data if the initiator
 * waits for an answer. The answer is sent by p4_unlock_run(). Returns true if on_replied() will be
 * called, with the lock, when the data have been sent. With the lock.
 */
bool p4_response_start(struct p4_arrival *arrival, const struct tq_buf *buf,
		       void (*on_replied)(struct p4_arrival *arrival, int error));

#endif
