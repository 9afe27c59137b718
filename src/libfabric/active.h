/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: requests that the target's process carries out, because an adapter can't. They
 * have two contexts of their own in each domain, one for requests and one for answers. No entry
 * takes requests: each is carried out when its data have come, in the order of their coming. An
 * answer has an entry, so that the end of the connection to the target ends a request, too.
 */
#ifndef TF_ACTIVE_H
#define TF_ACTIVE_H

#include <stdint.h>
#include <sys/uio.h>

#include "domain.h"

struct tf_active;

enum tf_request_kind {
	TF_REQUEST_EVENT,  /* a write or a read has ended, of which the target's endpoint learns */
	TF_REQUEST_ATOMIC, /* changes `count` items, and answers */
	TF_REQUEST_KINDS
};

/* TF_REQUEST_EVENT: only the registration counts. No endpoint has this number. */
#define TF_NO_ENDPOINT UINT32_MAX

#define TF_REQUEST_DATA  1u /* `data` are for the completion queue of the target's endpoint */
#define TF_REQUEST_READ  2u /* TF_REQUEST_EVENT: the operation was a read */
#define TF_REQUEST_FETCH 4u /* TF_REQUEST_ATOMIC: the answer has the old items */
#define TF_REQUEST_ATOM  8u /* TF_REQUEST_EVENT: the operation was an atomic one */

/* The header of a request, in the byte order of the machine. */
struct tf_request {
	uint8_t kind;  /* enum tf_request_kind */
	uint8_t flags; /* TF_REQUEST_* */
	uint8_t op, type;
	uint32_t endpoint; /* the number of the target's endpoint, or TF_NO_ENDPOINT */
	union {
		uint64_t addr;   /* TF_REQUEST_ATOMIC: of the items */
		uint64_t length; /* TF_REQUEST_EVENT: of the operation, for the completion */
	};
	uint64_t key;
	uint64_t data;
	uint64_t ticket; /* the bits of the answer; 0: none is expected */
	uint32_t count;  /* of items */
	uint32_t reserved;
};
_Static_assert(sizeof(struct tf_request) == 48, "the header has no gaps");

/* The header of an answer, which the old items follow. */
struct tf_answer {
	uint64_t error; /* 0, or a positive number of fi_errno(3) */
};

/* A request that waits for its answer; a part of the caller's object. */
struct tf_call {
	/* Ends the request: `error` is 0 or a negative errno. The answer's data are in the buffer
	 * that the request was sent with. Called without a lock. */
	void (*end)(struct tf_call *call, int error);
	size_t expected; /* bytes of the answer */
};

/* The most data of a request, in bytes: those of the longest atomic operation, and items to compare
 * with. */
#define TF_ATOMIC_MAX  4096
#define TF_REQUEST_MAX (2 * TF_ATOMIC_MAX)

/*
 * Carries a request with *len bytes of data out. Nothing in it is to be trusted. Returns 0, after
 * storing the answer's data in `data` and their length, which isn't larger, in *len; or a negative
 * errno. Called without a lock, for one request of a domain after the other.
 */
typedef int tf_carry_out(struct tf_domain *domain, const struct tf_request *request, void *data,
			 size_t *len);

/* Adds the contexts to a domain. */
int tf_active_open(struct tf_domain *domain, tf_carry_out *carry_out);
/* Ends them, if there are any: no request is carried out any more. */
void tf_active_remove(struct tf_domain *domain);
/* Frees them, after the transport. */
void tf_active_free(struct tf_domain *domain);

/*
 * Sends a request with `count` pieces of data, which are copied. With a call the request is
 * answered, into `answer`, and the call ends then. Returns 0, or a negative errno: nothing was
 * sent.
 */
int tf_active_send(struct tf_domain *domain, struct tq_peer *peer, struct tf_request *request,
		   const struct iovec *data, size_t count, struct tf_call *call, void *answer);

#endif
