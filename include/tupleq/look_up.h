/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding processes without a name service, for libraries that stand on libtupleq: a process has a
 * short name in its fabric, and whoever knows that name can ask the process for its address.
 */
#ifndef TUPLEQ_LOOK_UP_H
#define TUPLEQ_LOOK_UP_H

#include <tupleq/tupleq.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- finding processes ---- */

/* The short name of an endpoint. */
struct tq_locator {
	uint32_t port;   /* InfiniBand: the LID; RoCE: the IPv4 address, as a number */
	uint32_t number; /* of the endpoint's UD queue pair */
};

/* Sets *locator to the endpoint's own. Returns 0, or -ENOTSUP if the port is a RoCE port without an
 * IPv4 address. */
int tq_locator(const struct tq_ep *ep, struct tq_locator *locator);

/* Sets *locator to the peer's. Returns tq_locator()'s results. Takes no lock. */
int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator);

/*
 * Lets this endpoint find others, and others find it. All processes that are to find each other
 * have the same `key` in struct tq_job.
 *
 * found() is called with an address for tq_peer_add() when a look-up has ended, and when a process
 * that is no peer yet asks for this one or connects to it; perhaps several times for one process.
 * `error` is 0, or -ETIMEDOUT if nobody has answered for as long as the parameter connect_timeout
 * says; then `address` is NULL. Called by threads that are in tq_progress(), tq_probe() or
 * tq_mprobe(), and with tq_thread_progress() by the service thread, without any lock held.
 */
typedef void tq_found(void *arg, const struct tq_locator *locator, const void *address, size_t len,
		      int error);
void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg);

/* Starts to ask a process for its address, unless it is being asked already. Returns 0 if found()
 * will be called, -EINVAL if nobody can have that name, -ENOTSUP (see tq_locator()), or -ENOMEM. */
int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
