/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtupleq's contexts with match bits: Portals' matching, for libraries that stand on libtupleq.
 *
 * A message in such a context has 64 match bits, a header of the user's, and data. The receiver
 * appends entries to a list. An entry names a source, or any, bits, and bits to ignore. A message
 * goes to the first entry of the list that fits, in the order in which the entries were appended,
 * and the messages of a sender are matched in the order in which they were sent.
 *
 * A tuple is (context, source, bits & ~mask), where the mask is what the entries for that source
 * ignore. An entry with TQ_ENTRY_QUEUE that has the tuple's source and mask may lie in the tuple's
 * queue, and then the HCA matches it: the header goes to memory of the library, the data to the
 * entry's buffer, and no function of the user's has a part in that. All other entries are matched
 * by the library, which asks match(). Queues and entries keep one order: an entry that could match
 * a tuple's messages recalls the tuple's queue, as a wildcard receive does.
 */
#ifndef TUPLEQ_MATCH_H
#define TUPLEQ_MATCH_H

#include <tupleq/tupleq.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- contexts with match bits ---- */

/* The most bytes in front of a message's data. */
#define TQ_HEADER_MAX 48

/* A message in a context with match bits. */
struct tq_envelope {
	int32_t source;       /* the sender's rank */
	struct tq_peer *peer; /* the sender; NULL without a header */
	uint64_t bits;
	uint64_t length;    /* of the data */
	const void *header; /* header_len bytes; valid during the call that this is passed to */
	/* The `user` with which unexpected() took the data; NULL: the message still has them. */
	void *taken;
};

/* The memory that a message's data are to go to, and the `user` of done() for that. Data beyond
 * buf.len bytes are dropped, all of them if it is 0. */
struct tq_take {
	struct tq_buf buf;
	void *user;
};

enum tq_verdict {
	TQ_PASS,      /* doesn't take the message: the next entry that fits is asked */
	TQ_TAKE,      /* takes the message, and leaves the list */
	TQ_TAKE_STAY, /* takes the message, and stays at its place */
	TQ_STOP       /* with TQ_ENTRY_SEARCH: leaves the message, and ends the search */
};

enum tq_disposition {
	/* The message waits for an entry as it is: short data in memory of the library, long data
	 * at the sender. */
	TQ_KEEP,
	/* The data go to the buffer of *take, and the envelope waits for an entry. */
	TQ_STORE,
	/* The data go to the buffer of *take (which may be empty), and no envelope is left. done()
	 * is called only if take->user isn't NULL. */
	TQ_DROP
};

/* A message that has come to its entry. */
struct tq_arrival {
	int error; /* 0; -EIO: the connection to the sender failed; -ECANCELED: the context was
		      removed; -ENOMEM. Then the data may be incomplete. */
	struct tq_envelope envelope;
	uint64_t received; /* bytes in the buffer, which may be shorter than envelope.length */
	bool queue;        /* the HCA has matched the message */
};

/*
 * The user's functions for a context with match bits; `arg` is that of the context.
 *
 * match() and unexpected() decide on one message after the other, in the order of matching. They
 * are called with the endpoint's lock held, by any thread that is in a function of the library and
 * by the service thread. So they must not call the library, except for tq_peer_locator(), nor wait
 * for a lock that a thread may hold while it calls the library.
 */
struct tq_match_ops {
	/*
	 * Decides on a message that fits an entry, `entry` being what it was appended with. *take
	 * is filled in with the entry's buffer and `entry`; the function may change it. If
	 * envelope->taken isn't NULL the data are where unexpected() had them put, or are on their
	 * way there; take->buf is ignored then. Each message that is taken ends with done().
	 */
	enum tq_verdict (*match)(void *arg, void *entry, const struct tq_envelope *envelope,
				 struct tq_take *take);
	/*
	 * Decides on a message that no entry takes. Called once for each; *take is zero. With
	 * TQ_STORE, done() is called with take->user when the data are there; the same take->user
	 * is the `taken` of the envelope when an entry takes the message, which may be earlier.
	 * NULL: TQ_KEEP.
	 */
	enum tq_disposition (*unexpected)(void *arg, const struct tq_envelope *envelope,
					  struct tq_take *take);
	/*
	 * Ends the transfer of a message's data to the buffer that match() or unexpected() named,
	 * or that an entry with TQ_ENTRY_QUEUE has; `user` is that of struct tq_take, or of the
	 * entry. Also called, with an error and a NULL header, for each entry that the end of its
	 * source or its context takes out of the list, with the entry's `user`. Called as
	 * complete() of struct tq_job, so without any lock held; but one call comes after the
	 * other, in the endpoint. Messages are matched in order, but their data come, and done() is
	 * called, in no order: a message that is read by RDMA, as a short one may be, can end after
	 * a later one that came with its data. A function of the library that done() calls, calls
	 * no done().
	 */
	void (*done)(void *arg, void *user, const struct tq_arrival *arrival);
};

/*
 * Adds a context with match bits; the arguments are those of tq_ctx_add(). header_len is the number
 * of bytes in front of each message's data, a multiple of 8 and at most TQ_HEADER_MAX. All
 * processes pass one length. The flags may be TQ_CTX_OPEN, TQ_CTX_CLOSED and TQ_CTX_SERVED. *ops
 * and `arg` must stay until the last call of done(). unexpected() may be called before this
 * returns, for messages that came earlier. Returns tq_ctx_add()'s results; -EINVAL also if the
 * flags, header_len or *ops are wrong.
 */
int tq_ctx_add_bits(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, size_t header_len, const struct tq_match_ops *ops,
		    void *arg, struct tq_ctx **ctx);

/*
 * A closed context, which tq_ctx_set_flags() opens and closes: its entries take nothing. Each
 * message is offered to unexpected(), which should drop it. Messages whose entries were in a queue
 * when the context was closed may still come to those, as long as tq_ctx_has_queues().
 */
#define TQ_CTX_CLOSED 32u

/* A context whose messages are requests to the process, which their senders may wait for: both
 * their coming and the end of their transfer wake a service thread with TQ_THREAD_SERVED. Senders
 * and receivers set the flag. */
#define TQ_CTX_SERVED 64u

/* Returns true if entries of the context are in queues, or on their way back from there, or if
 * done() has not returned for a message that the HCA has matched there. A closed context has none
 * soon: the caller makes progress and asks again. */
bool tq_ctx_has_queues(struct tq_ctx *ctx);

/* ---- sending with match bits ---- */

/* The message is matched by the library, because the HCA could not do what it asks for: it has an
 * offset, or is a request that an entry's buffer must not take. */
#define TQ_SEND_MATCHED 16u
/* The message is sent only if its send ends with that, as that of most short messages does; else
 * tq_send_bits() returns -EAGAIN, and the caller, who had no record of the send so far, makes one
 * and sends without this flag. */
#define TQ_SEND_AT_ONCE 64u

/* Starts a send of `header` (header_len bytes, which are copied) and the data in `buf`. All else is
 * as with tq_send(), the flags too; complete() gets a status without a tag. */
int tq_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		 const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req);

/* ---- entries ---- */

typedef uint32_t tq_entry_id; /* never 0, and not used again soon */

/* The HCA may match the entry: it takes one message as it is, of any length, into its buffer, from
 * the buffer's beginning. Without a source, or with bits to ignore that are not the mask for its
 * source, the library matches it nevertheless. */
#define TQ_ENTRY_QUEUE 1u
/* Nothing is appended: match() decides on the messages that wait and fit, in their order, until the
 * entry would leave the list, or the search ends. tq_entry_append() returns -EAGAIN, and nothing
 * was decided, if a queue is on its way back, so that it isn't known yet which message is first:
 * the caller makes progress and tries again. */
#define TQ_ENTRY_SEARCH 2u

/*
 * Appends an entry for messages from a rank, or from TQ_ANY_SOURCE, whose bits are `bits` except
 * for those that are set in `ignore`. Messages that wait are decided on first, by match(), before
 * this returns. `buf` may be NULL without TQ_ENTRY_QUEUE. *id (if `id` isn't NULL) is set before
 * the first call of match().
 *
 * Returns how often match() has taken a message (and 0 doesn't mean that the entry is still there
 * when this returns: other threads make progress), -EINVAL as tq_recv(), -EIO if the source has
 * failed (but a search looks at what has come from it), -ENOMEM, or -EAGAIN (TQ_ENTRY_SEARCH).
 */
int tq_entry_append(struct tq_ctx *ctx, int rank, uint64_t bits, uint64_t ignore,
		    const struct tq_buf *buf, unsigned flags, void *user, tq_entry_id *id);

/*
 * Removes an entry that has not left its list; neither match() nor done() is called for it any
 * more, except done() for messages that it has taken. Returns 0; -ENOENT if the entry has left the
 * list, because it took a message or its source failed: done() was or will be called for that; or
 * -EAGAIN if it is in a tuple's queue, which is being recalled now: the caller makes progress and
 * tries again.
 */
int tq_entry_remove(struct tq_ctx *ctx, tq_entry_id id);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
