/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device for the fuzzer below libtupleq: verbs in which nothing happens by itself. What the wire
 * would bring is put into it by the functions here. It checks what hardware would: that posted
 * memory is registered, that no queue overruns. There is one device, and its state goes on from run
 * to run only where fake_start() doesn't reset it.
 */
#ifndef FUZZ_VERBS_H
#define FUZZ_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

void fake_start(void (*datagram)(const uint8_t *bytes, uint32_t len));
/* Everything that was made has been destroyed. */
void fake_nothing_left(void);

/* What arrives. false: there is no receive for it. SRQs are counted in the order in which they were
 * made. */
bool fake_datagram(const void *bytes, uint32_t len);
bool fake_message(uint32_t srq, const void *bytes, uint32_t len);
/* The first SRQs are the control channel's. */
uint32_t fake_srqs(void);

/* The oldest send of the n-th connection that has some ends: well, or with an error, which ends the
 * connection. */
void fake_complete(uint32_t n, enum ibv_wc_status status);
/* The completion queues break: they can't be polled, or an event says so. */
void fake_break(bool event);
/* The wire is cut: all that is sent ends with an error. */
void fake_cut(void);

/* Time (ns) goes on with each look at the clock, by more when the endpoint waits, and: */
void fake_clock_add(uint64_t ns);

#endif
