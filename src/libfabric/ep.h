/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints, and operations on them: an operation has begun when it is counted, and ends once, with
 * a completion and a count. An endpoint may be closed while sends are under way; what is left of it
 * then ends them quietly.
 */
#ifndef TF_EP_H
#define TF_EP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_endpoint.h>

#include "av.h"
#include "cntr.h"
#include "contexts.h"
#include "cq.h"
#include "domain.h"
#include "names.h"

struct tf_recv;
struct tf_claim;

/* Which counter counts an operation. */
enum tf_count {
	TF_COUNT_SEND,
	TF_COUNT_RECV,
	TF_COUNT_READ,
	TF_COUNT_WRITE,
	TF_COUNT_REMOTE_READ,
	TF_COUNT_REMOTE_WRITE,
	TF_COUNTS
};

/* Operations of one direction: sends and one-sided ones, or receives. */
struct tf_side {
	struct tf_cq *cq;
	bool selective;    /* only operations with FI_COMPLETION are reported */
	uint64_t op_flags; /* of calls without flags */
	size_t size;       /* the most operations under way */
	atomic_size_t busy;
};

/* The memory of a receive that has ended, for a next one. */
struct tf_spare {
	struct tf_spare *next;
};

struct tf_ep {
	struct fid_ep fid;
	struct tf_domain *domain;
	struct tf_contexts *contexts; /* of its number */
	struct tf_av *av;
	uint64_t caps;
	size_t inject_size;
	struct tf_side tx, rx;
	struct tf_cntr *cntrs[TF_COUNTS];
	struct tf_name *name; /* of the service that the user has asked for; NULL: none */
	atomic_size_t min_multi_recv;
	bool enabled;
	atomic_uint refs; /* the user's, and one for each operation under way */
	pthread_mutex_t lock;
	/* Guarded by the lock: */
	bool closed;
	struct tf_recv *posted;  /* list */
	struct tf_spare *spares; /* list */
	unsigned nspares;
	struct tf_claim *claims; /* list: messages that were claimed */
};

static inline struct tf_ep *tf_ep_of(struct fid_ep *fid)
{
	return tf_container(fid, struct tf_ep, fid);
}

/* An operation under way: part of the object that stands for it. */
struct tf_op {
	struct tf_ending ending; /* of a send of libtupleq */
	struct tf_ep *ep;
	enum tf_count count;
	bool report;    /* success is reported, too */
	fi_addr_t peer; /* whom an error concerns, or FI_ADDR_NOTAVAIL */
	/* The completion, whose other fields the operation's end sets: */
	void *context;
	uint64_t flags;
};

/* Returns true if an operation with these flags is reported. */
static inline bool tf_side_reports(const struct tf_side *side, uint64_t flags)
{
	return side->cq && (!side->selective || (flags & FI_COMPLETION));
}

/* Returns 0 if all flags of an operation are known, otherwise an error. */
int tf_op_check_flags(uint64_t flags, uint64_t known);
/* Begins an operation. Returns 0; -FI_EAGAIN if too many are under way, or their completions were
 * not read; -FI_EOPBADSTATE if the endpoint isn't enabled. An operation whose data are copied is
 * bounded by memory alone: a program may inject any number of messages before it receives. */
int tf_op_begin(struct tf_op *op, struct tf_ep *ep, struct tf_side *side, bool copied);
/* Takes back the beginning of an operation that could not be started. */
void tf_op_abort(struct tf_op *op);
/* Ends the operation: adds its completion, if it is reported or has an error, and counts it. The
 * object is the caller's again. Called without libtupleq's lock. */
void tf_op_end(struct tf_op *op, const struct tf_completion *completion);
/* The first half of tf_op_end(), with the endpoint's lock; tf_op_drop(), without it, is the other.
 */
void tf_op_report(const struct tf_op *op, const struct tf_completion *completion);
/* Ends an operation of which nothing is to be told but an error (negative, or 0). */
void tf_op_end_plain(struct tf_op *op, int error);
/* Ends the operation without a completion and a count. */
void tf_op_drop(struct tf_op *op);
/* Adds a completion that belongs to no operation that has begun. */
void tf_ep_report(struct tf_ep *ep, struct tf_side *side, const struct tf_completion *completion);
/* Counts an operation of a peer that has ended. */
void tf_ep_count(struct tf_ep *ep, enum tf_count count);
/* Drops the user's reference. */
void tf_ep_release(struct tf_ep *ep);

#endif
