/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint of libtupleq, which all interfaces of the process share. */
#ifndef P4_ENDPOINT_H
#define P4_ENDPOINT_H

#include <stdbool.h>

#include <tupleq/look_up.h>
#include <tupleq/match.h>

/* The first field of each object of this library that libtupleq is given: it tells the kind. */
enum p4_tag {
	P4_TAG_ENTRY,    /* struct p4_entry */
	P4_TAG_ARRIVAL,  /* struct p4_arrival */
	P4_TAG_HIT,      /* struct p4_arrival, its `hit` */
	P4_TAG_ANSWER,   /* struct p4_op, its `answer` */
	P4_TAG_SENT,     /* struct p4_op, the operation whose request is sent */
	P4_TAG_RESPONSE, /* struct p4_response */
	P4_TAG_PEER,     /* struct p4_peer */
	P4_TAG_NOTHING   /* no object: answers that no operation waits for */
};

/* Opens the endpoint, or takes one more reference. Returns a code of Portals. Called without the
 * library's lock, by one thread at a time. */
int p4_endpoint_open(void);
/* Drops a reference; the last one closes the endpoint, and frees the processes and the interfaces
 * that were closed. Called as p4_endpoint_open(). */
void p4_endpoint_close(void);
/* Returns the endpoint, or NULL. */
struct tq_ep *p4_endpoint(void);
/* Returns the process's name in the fabric. */
struct tq_locator p4_endpoint_locator(void);
/* Makes progress, if the endpoint is open. Called without the lock. */
void p4_endpoint_progress(void);
/* Returns true if a thread makes progress while all others sleep. */
bool p4_endpoint_has_thread(void);
/* Writes a sentence to the log. */
void p4_log(enum tq_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
