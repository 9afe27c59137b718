/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives. One with a source, for one message, into one piece of memory, may be matched by the
 * adapter (TQ_ENTRY_QUEUE), if the source is the endpoint of the same number in its process. All
 * others are matched by libtupleq, which asks match().
 */
#ifndef TF_RECV_H
#define TF_RECV_H

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ep.h"
#include "vector.h"

/* The first field of what libtupleq is given for a message that comes: it tells the kind. */
enum tf_tag {
	TF_TAG_RECV,   /* struct tf_recv */
	TF_TAG_PART,   /* struct tf_part */
	TF_TAG_SEARCH, /* struct tf_search */
	TF_TAG_CLAIM   /* struct tf_claim */
};

/* Which messages fit, besides their bits. */
struct tf_source {
	struct tf_peer *peer; /* NULL: any */
	uint32_t number;      /* of the process's endpoint */
};

/* A receive. */
struct tf_recv {
	enum tf_tag tag;
	struct tf_op op;
	enum tf_kind kind;
	struct tf_source source;
	struct tq_buf buf;
	struct tf_vector vector;
	/* FI_MULTI_RECV: */
	bool multi;
	char *at; /* the memory that is left; changed by match() */
	size_t left, min_left;
	atomic_uint parts; /* messages under way to the buffer, plus one while it is posted */
	bool canceled;
	tq_entry_id id;     /* written by the thread that posts it */
	atomic_uint owners; /* the thread that posts it, and its list or whoever holds it */
	/* Guarded by the endpoint's lock: */
	bool held;                   /* a thread uses the record */
	bool ended;                  /* but for that thread it is freed */
	struct tf_recv *prev, *next; /* tf_ep.posted */
};

/* A message that has gone to a buffer with FI_MULTI_RECV. */
struct tf_part {
	enum tf_tag tag;
	struct tf_recv *recv;
	void *addr;
};

/* The arguments of a receive. */
struct tf_recv_args {
	enum tf_kind kind;
	const struct iovec *iov;
	size_t count;
	fi_addr_t source;
	uint64_t tag, ignore;
	uint64_t flags;
	void *context;
};

/* Posts a receive. Returns 0 or a negative error. */
ssize_t tf_recv(struct tf_ep *ep, const struct tf_recv_args *args);
/* Cancels the receive with that context. Returns 0, or -FI_ENOENT if there is none that a message
 * has not taken. */
ssize_t tf_recv_cancel(struct tf_ep *ep, void *context);
/* Takes all receives of an endpoint that is being closed out of their lists, without completions,
 * and waits until no message goes to their buffers any more. */
void tf_recv_end_all(struct tf_ep *ep);
/* Sets which messages an entry is for: *source and *rank (TQ_ANY_SOURCE if libtupleq can't compare
 * the source). Returns 0 or a negative error. */
int tf_recv_source(struct tf_ep *ep, enum tf_kind kind, fi_addr_t addr, struct tf_source *source,
		   int *rank);

#endif
