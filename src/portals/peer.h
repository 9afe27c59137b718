/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes, by nid and pid. A process's address is looked up when an operation goes to it first;
 * until the address is there, operations wait in their order. A process that sends first is known
 * by its address from the start.
 */
#ifndef P4_PEER_H
#define P4_PEER_H

#include <portals4.h>
#include <uthash.h>

#include "endpoint.h"
#include "lib.h"

struct p4_ni;
struct p4_op;

enum p4_peer_state {
	P4_PEER_NEW,
	P4_PEER_ASKED, /* is being looked up, or operations that waited for that are starting */
	P4_PEER_READY,
	P4_PEER_FAILED /* the connection has failed */
};

#define P4_PTS   64     /* portal table entries of an interface, each with a context */
#define P4_REPLY P4_PTS /* the context of answers */
/* The ranks of a process in the contexts of an interface; 0: not joined yet. */
struct p4_ranks {
	int32_t plus_one[P4_PTS + 1];
};

#define P4_NIS 4 /* kinds of interfaces: matching or not, logical or physical */

struct p4_peer {
	enum p4_tag tag;
	struct p4_peer_key {
		uint32_t nid, pid;
	} key;
	enum p4_peer_state state;
	struct tq_peer *tq;        /* NULL: no address yet */
	struct p4_op *waiting;     /* list: operations that wait for the address */
	struct p4_op *answers;     /* list: operations that wait for their answer */
	struct p4_work *responses; /* list: answers to the process that wait for the address */
	struct p4_ranks *ranks[P4_NIS];
	bool watched[P4_NIS]; /* an entry reports when the connection to the process fails */
	UT_hash_handle hh;
};

extern struct p4_peer *p4_peers; /* hash by key; guarded by the lock */

/* Returns the process, after adding it if necessary; NULL without memory. With the lock. */
struct p4_peer *p4_peer_get(uint32_t nid, uint32_t pid);
/* Returns true if that process has sent the message. */
bool p4_peer_is_sender(uint32_t nid, uint32_t pid, const struct tq_envelope *envelope);
/* Returns the process's rank in a context of the interface, or a negative errno; its address must
 * be there. Called without the lock. */
int p4_peer_rank(struct p4_peer *peer, struct p4_ni *ni, unsigned pt);
/* Puts the work, which sends an answer to the process, off until the process's address is there.
 * Returns false if the address is there already. The wait is short: as a message of the process has
 * come, another thread is taking the address. Called without the lock. */
bool p4_peer_put_off(struct p4_peer *peer, struct p4_work *work);
/* Forgets the ranks in an interface that ends. With the lock. */
void p4_peers_leave(const struct p4_ni *ni);

/* ---- peer_start.c ---- */
/* The functions that the endpoint calls. */
extern const struct p4_endpoint_ops p4_peer_ops;
/* Starts an operation on the process, now or when its address is there. Called without the lock. */
void p4_peer_start(struct p4_peer *peer, struct p4_op *op);
/* Looks the process up, unless that was done. Called without the lock. */
void p4_peer_look_up(struct p4_peer *peer);
/* Ends operations that wait for the answer of a process whose connection has failed. With the
 * lock. */
void p4_peer_fail(struct p4_peer *peer);
/* Frees all, after the endpoint. With the lock. */
void p4_peers_destroy(void);

#endif
