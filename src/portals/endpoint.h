/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint of libtupleq, which all interfaces of the process share. */
#ifndef P4_ENDPOINT_H
#define P4_ENDPOINT_H

#include <stdbool.h>

#include <tupleq/look_up.h>
#include <tupleq/match.h>

/* The first field of each object of this library that libtupleq is given for a message that comes:
 * it tells the kind. */
enum p4_tag {
	P4_TAG_ENTRY,   /* struct p4_entry */
	P4_TAG_ARRIVAL, /* struct p4_arrival */
	P4_TAG_HIT,     /* struct p4_arrival, its `hit` */
	P4_TAG_ANSWER,  /* struct p4_op, its `answer` */
	P4_TAG_PEER,    /* struct p4_peer */
	P4_TAG_NOTHING  /* no object: answers that no operation waits for */
};

/* A send, as libtupleq is given it: part of the object that sends. */
struct p4_send {
	/* Ends the send. Called without the lock. */
	void (*end)(struct p4_send *send, int error);
};

/* The functions of the processes (`peer`) that the endpoint calls, all without the lock. */
struct p4_endpoint_ops {
	/* Takes the result of a look-up. */
	void (*on_found)(void *arg, const struct tq_locator *locator, const void *address,
			 size_t len, int error);
	/* Ends operations that wait for the answer of a process that has closed its interfaces. */
	void (*check)(void);
};

/* Opens the endpoint, or takes one more reference. Returns a code of Portals. Called without the
 * library's lock, by one thread at a time. */
int p4_endpoint_open(const struct p4_endpoint_ops *ops);
/* Drops a reference; the last one closes the endpoint. Returns true if the endpoint is closed.
 * Called as p4_endpoint_open(). */
bool p4_endpoint_close(void);
/* Returns the endpoint, or NULL. */
struct tq_ep *p4_endpoint(void);
/* Returns the process's name in the fabric. */
struct tq_locator p4_endpoint_locator(void);
/* Makes progress, if the endpoint is open. Called without the lock. */
void p4_endpoint_progress(void);
/* Returns true if a thread makes progress while all others sleep. */
bool p4_endpoint_has_thread(void);
/* Has the processes checked (p4_endpoint_ops). Called without the lock. */
void p4_endpoint_check(void);
/* Counts an answer, which is a message to no portal table entry. With the lock. */
void p4_endpoint_count_answer(void);

#endif
