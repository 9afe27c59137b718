/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device for the fuzzer below libtupleq: verbs in which nothing happens by itself. The functions
 * here stand for the wire. The device makes the checks of hardware: posted memory is registered,
 * and no queue overruns. There is one device, which fake_start() resets.
 */
#ifndef FUZZ_VERBS_H
#define FUZZ_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

void fake_start(void (*datagram)(const uint8_t *bytes, uint32_t len));
/* Checks that all objects were destroyed. */
void fake_nothing_left(void);

/* Have data arrive. Return false if there is no receive for them. SRQs are counted in the order in
 * which they were made. */
bool fake_datagram(const void *bytes, uint32_t len);
bool fake_message(uint32_t srq, const void *bytes, uint32_t len);
/* Returns the number of SRQs. The first ones are the control channel's. */
uint32_t fake_srqs(void);

/* Ends the oldest send of the n-th connection that has any: well, or with an error, which ends the
 * connection. */
void fake_complete(uint32_t n, enum ibv_wc_status status);
/* Breaks the completion queues: they can't be polled, or an event reports them. */
void fake_break(bool event);
/* Cuts the wire: all sends end with an error. */
void fake_cut(void);

/* Moves the clock on, in ns. Each reading of the clock moves the clock on as well, and each
 * sched_yield() by more. */
void fake_clock_add(uint64_t ns);

#endif
