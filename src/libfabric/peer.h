/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes, by their names in the fabric. A process is asked for its address by the first
 * operation that goes to it; a process that sends first is known by its address from the start.
 */
#ifndef TF_PEER_H
#define TF_PEER_H

#include <stdatomic.h>

#include <uthash.h>

#include "domain.h"

struct tf_peer {
	struct tf_domain *domain;
	struct tq_locator locator;
	_Atomic(struct tq_peer *) tq; /* NULL: no address yet */
	atomic_bool asked;            /* a look-up is under way */
	atomic_int error;             /* of the last look-up; an operation takes it */
	UT_hash_handle hh;
};

/* Returns the process, after adding it if necessary; NULL without memory. Called without the
 * domain's lock. */
struct tf_peer *tf_peer_get(struct tf_domain *domain, const struct tq_locator *locator);
/* Sets *tq if the process's address is there. Otherwise it is asked for, and -FI_EAGAIN is
 * returned, or the error of a look-up that has ended. Called without the lock. */
int tf_peer_ready(struct tf_peer *peer, struct tq_peer **tq);
/* Forgets the process's address if the process has ended: a new one may have its name, and is asked
 * for then. Called without the lock. */
void tf_peer_renew(struct tf_peer *peer);
/* Takes the result of a look-up (tq_found). */
void tf_peer_found(void *arg, const struct tq_locator *locator, const void *address, size_t len,
		   int error);
/* Frees the processes of a domain, after the transport. */
void tf_peers_free(struct tf_domain *domain);

#endif
