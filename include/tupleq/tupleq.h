/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtupleq: two-sided messages with MPI's matching, matched by the InfiniBand adapter (HCA).
 *
 * A message is matched on (context, source, tag). Such a tuple gets an XRC shared receive queue
 * (SRQ) of its own on demand, into which the receiver's buffers are posted, and to which the
 * sender's HCA sends: the adapters do the matching, at every size, without a copy, a control
 * message or a CPU (M. J. Koop, J. K. Sridhar, D. K. Panda, "TupleQ: Fully-Asynchronous and
 * Zero-Copy MPI over InfiniBand", 2009). The library stands on libibverbs alone; there is no MPI in
 * it.
 *
 * Errors: functions return 0 (or a count) or a negative errno. Where a user can do something about
 * it, a sentence that says what goes to the log function of struct tq_job.
 *
 * Threads: every function may be called by any thread, unless it says otherwise. Callbacks are
 * called by threads that are in tq_progress(), tq_flush(), tq_rma_flush() or tq_close(), without
 * any lock held: they may call the library again.
 */
#ifndef TUPLEQ_TUPLEQ_H
#define TUPLEQ_TUPLEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define TQ_ANY_SOURCE (-1)
/* Matches tags of 0 and above only: negative tags are for the library's user (MPI's collectives).
 */
#define TQ_ANY_TAG INT32_MIN

struct tq_ep;   /* this process on one port of an HCA */
struct tq_peer; /* another process */
struct tq_ctx;  /* a context of matching, as an MPI communicator */
struct tq_req;  /* an operation that is under way */
struct tq_msg;  /* a message taken from the queues by a matched probe */

/* ---- parameters ---- */

enum tq_param_type {
	TQ_PARAM_BOOL,
	TQ_PARAM_INT,  /* int64_t */
	TQ_PARAM_SIZE, /* int64_t, bytes; "8K", "1M" are understood */
	TQ_PARAM_ENUM, /* one of `choices` */
	TQ_PARAM_STRING
};

struct tq_param_desc {
	const char *name;
	enum tq_param_type type;
	const char *value;   /* default, as a string */
	int64_t min, max;    /* TQ_PARAM_INT and TQ_PARAM_SIZE */
	const char *choices; /* TQ_PARAM_ENUM: names separated by '|' */
	int level;           /* MPI_T verbosity 1 (user, basic) to 9 (developer, all) */
	const char *help;
};

struct tq_params; /* a value for each parameter */

/* The i-th parameter's description; NULL when there are no more. Static memory. */
const struct tq_param_desc *tq_param_desc(unsigned i);

/* Parameters with their defaults; NULL without memory. The caller frees them with tq_params_free().
 */
struct tq_params *tq_params_new(void);
void tq_params_free(struct tq_params *params);

/* Sets a parameter from a string. -ENOENT: no such parameter; -EINVAL: `value` is not understood or
 * out of range; then why, if not NULL, receives a sentence (cut to `size` bytes). */
int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size);

/* ---- counters ---- */

struct tq_counter_desc {
	const char *name;
	bool level; /* a current value with a high-water mark, else it only grows */
	const char *help;
};

/* The i-th counter's description; NULL when there are no more. Static memory. */
const struct tq_counter_desc *tq_counter_desc(unsigned i);

/* Its value, and (for a level) its highest value so far. Thread-safe, wait-free; may lag behind by
 * an operation. */
uint64_t tq_counter(const struct tq_ep *ep, unsigned i);
uint64_t tq_counter_high(const struct tq_ep *ep, unsigned i);

/* ---- memory registration ---- */

/* A registration with the adapter. */
struct tq_mr;

/*
 * A registration cache of the caller's, used for user buffers. get(): a registration that covers
 * [addr, addr + len), with `write` for what comes, without for what is sent, which stays valid
 * until put() is called with it; NULL: it can't be registered (the library then takes a slower
 * way). A cache makes registrations by tq_mr_register() and drops them by tq_mr_deregister().
 * Called with the endpoint's lock held: they must not call other functions of the library.
 */
struct tq_mr_cache {
	struct tq_mr *(*get)(void *arg, void *addr, size_t len, bool write, void **cookie);
	void (*put)(void *arg, void *cookie);
	void *arg;
};

/*
 * Registers memory for the adapter to read, locally and for peers; with `write` to write, too, for
 * which the process itself has to have that right. 0, or -ENOMEM (the memlock limit, or the
 * adapter's), -EINVAL, -EFAULT. They take no lock of the endpoint's.
 */
int tq_mr_register(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_mr **mr);
void tq_mr_deregister(struct tq_mr *mr);

/* For a cache: counts a registration that get() could not return any more, as its memory had
 * changed in part, while operations still held it. */
void tq_mr_count_outdated(struct tq_mr *mr);

/* Instead of tq_mr_deregister(): the registration goes when the endpoint is closed. For memory that
 * a peer may still write to: such a write would break its connection to this process if it
 * found no registration. The memory has to stay mapped until then. */
void tq_mr_abandon(struct tq_ep *ep, struct tq_mr *mr);

/* ---- endpoints and peers ---- */

enum tq_log_level {
	TQ_LOG_ERROR,
	TQ_LOG_WARN,
	TQ_LOG_INFO,
	TQ_LOG_DEBUG,
	TQ_LOG_WARN_HOST /* a warning of the host, not of this process: one of those there will do
			  */
};

/* How a request ended. */
struct tq_status {
	int error;      /* 0; -EMSGSIZE: the message was longer than the buffer, which holds its
			   beginning; -ECANCELED; -EIO: the connection to the peer failed, or that
			   to all as the adapter did (the log says how); -ENOMEM */
	int32_t source; /* receives: the sender's rank in the context, and the message's tag and
			   length in bytes (its whole length, */
	int32_t tag;    /* also when it was truncated) */
	uint64_t length;
};

/* What the processes of a job share, and how they are told of things. Copied by tq_open(). */
struct tq_job {
	/* The same for all processes that shall talk to one another directly on a node (one XRC
	 * domain per job and node). */
	uint64_t key;
	/* A directory of this user on this host, for the file (mode 0600) that stands for the XRC
	 * domain. */
	const char *dir;
	/* Of this process, for messages: "rank 3 on host n1". */
	const char *name;
	/* Never NULL. Called with a line of text, without its newline. From any thread, also with
	 * locks held: it must not call the library. */
	void (*log)(void *arg, enum tq_log_level level, const char *text);
	void *log_arg;
	/* A request has ended; `user` is what was given with it. Not called for those that had
	 * ended when they were started. */
	void (*complete)(void *user, const struct tq_status *status);
	/* Returns the `user` for complete() of a send with TQ_SEND_DEFER_USER that doesn't end when
	 * it is started; `user` is what was given with the send. NULL: there is no memory, and the
	 * send is not started. Called by the thread that is in tq_send(), with the endpoint's lock
	 * held: it must not call the library. May be NULL if no send has that flag. */
	void *(*send_pending)(void *user);
};

/*
 * Opens the device (of those that the parameters allow one that can do what is needed; InfiniBand
 * before RoCE, and then the one nearest to this process), and makes the endpoint. `params` are
 * copied; `cache` may be NULL. Errors, each with a sentence to the log: -ENODEV: no device, or none
 * with XRC and an active port; -ENOMEM: memlock; -EINVAL: parameters that this device can't
 * satisfy.
 */
int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep);

/*
 * Waits until what was sent is delivered (also held and copied messages), then ends the endpoint
 * with its contexts and peers. Receives that are still posted are dropped. The peers must not be
 * closed before (a barrier of the caller's, as MPI_Finalize has it, sees to that).
 */
void tq_close(struct tq_ep *ep);

/* What other processes need to reach this one: publish it. Owned by the endpoint. */
const void *tq_address(const struct tq_ep *ep, size_t *len);

/* A line on the device in use, e.g. "softhca0 port 1 (LID 3), 4096-byte MTU, null MR, implicit
 * ODP". Owned by the endpoint. */
const char *tq_device_text(const struct tq_ep *ep);

/*
 * A peer by its address, which is checked; `name` is for messages. Connections are made on first
 * use, by either side. This process itself is a peer like others. -EPROTO: not an address of this
 * library, or of another version of it; -ENETUNREACH: another kind of link layer, or of
 * RoCE address, or another subnet.
 */
int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer);

/* Waits until what was sent to the peer is delivered, then forgets it; no context may name it any
 * more. */
void tq_peer_remove(struct tq_peer *peer);
/* Forgets several peers of one endpoint, which are waited for together: n round trips are one. */
void tq_peers_remove(struct tq_peer *const peers[], size_t n);

/*
 * An endpoint belongs to who opened it, but other parts of the process may use it too. tq_find():
 * the one that is open in this process for the job `key` (struct tq_job), the oldest if there are
 * several; NULL: there is none. tq_peer_find(): the peer that was added with this address; NULL:
 * there is none. Both stay their owner's, who closes and removes them: the parts of the process
 * have to end in an order in which nobody uses them after that.
 */
struct tq_ep *tq_find(uint64_t key);
struct tq_peer *tq_peer_find(struct tq_ep *ep, const void *address, size_t len);

/*
 * The node of an address, which is what the adapter says and not the host's name: a port of an
 * adapter and an XRC domain. Equal bytes: one node, hence one host. -EPROTO: not an address.
 */
struct tq_node_id {
	uint8_t bytes[24];
};
int tq_address_node(const void *address, size_t len, struct tq_node_id *node);

/*
 * Asks for the connection to the peer, and doesn't wait for it. From when it is there, the peer's
 * death is noticed (parameter keepalive), also by one that only waits for what the peer does.
 * tq_peer_error(): 0; -EIO: its connection failed (the log says how), or it has closed its
 * endpoint.
 */
void tq_peer_connect(struct tq_peer *peer);
int tq_peer_error(struct tq_peer *peer);

/* ---- writing into a peer's memory ---- */

/* What a peer needs, with an address, to write into registered memory. */
uint32_t tq_mr_key(const struct tq_mr *mr);

#define TQ_PUT_MAX 8192

/*
 * Writes `len` bytes (at most TQ_PUT_MAX) to `addr` in the peer's memory, which it has registered
 * (tq_mr_register(), tq_mr_key()). The data are copied: they are the caller's when it returns, and
 * nobody is told when they have arrived. tq_flush() waits for that.
 *
 * The peer's CPU has no part in it, and may not rely on any order in which it sees the bytes of one
 * put or of several, with one exception: 8 bytes at an address that is a multiple of 8 appear
 * together. So each such word of what it waits for has to tell by itself that it is there.
 *
 * 0; -EIO: the peer has failed; -EINVAL: too long; -ENOMEM; -EAGAIN: 65536 puts wait for this peer,
 * so the caller has to make progress first. A put waits inside the library while the connection is
 * being made and while its queue is full; tq_progress() sends it then. A put to memory that isn't
 * registered (any more) breaks the connection to that peer; those to others of its node are made
 * anew.
 */
int tq_put(struct tq_peer *peer, const void *data, size_t len, uint64_t addr, uint32_t key);

/* ---- reading, writing and changing a peer's memory ---- */

/*
 * Registers memory for peers' operations (tq_rma()), each with the rights that it needs: to read,
 * to write, and for atomic operations. The memory is the caller's, and has to stay mapped until
 * tq_mr_deregister(), which must not be called while a peer may still have an operation under way
 * there. A peer needs the address and tq_mr_key(), in what way it gets them is the caller's matter;
 * the key ends with the registration.
 *
 * 0, or -ENOMEM (the memlock limit, or the adapter's), -EINVAL (`access`, or no memory is mapped
 * there), -EFAULT, -EOPNOTSUPP: the adapter has no atomic operations. Takes no lock of the
 * endpoint's.
 */
#define TQ_ACCESS_READ   1u
#define TQ_ACCESS_WRITE  2u
#define TQ_ACCESS_ATOMIC 4u
int tq_mr_expose(struct tq_ep *ep, void *addr, size_t len, unsigned access, struct tq_mr **mr);

/*
 * What atomic operations are atomic with (ibv_query_device(), atomic_cap): with nothing, as the
 * adapter has none; with other such operations by the same adapter; also with those of CPUs and
 * other devices.
 */
enum tq_atomics { TQ_ATOMICS_NONE, TQ_ATOMICS_ADAPTER, TQ_ATOMICS_ALL };
enum tq_atomics tq_rma_atomics(const struct tq_ep *ep);

enum tq_rma_kind {
	TQ_RMA_WRITE,
	TQ_RMA_READ,
	TQ_RMA_FETCH_ADD,   /* adds `operand` to the peer's 8 bytes */
	TQ_RMA_COMPARE_SWAP /* stores `operand` there if they are equal to `compare` */
};

/* An operation; copied by tq_rma(). */
struct tq_rma {
	enum tq_rma_kind kind;
	/* Memory here: what is written is read from it, what is read comes into it. An atomic
	 * operation's is 8 bytes, for what the peer's held before. The library's until done(). */
	void *local;
	/* A registration that covers it, with `write` (tq_mr_register()) or TQ_ACCESS_WRITE where
	 * something comes into it; NULL: the library registers it, by the cache if there is one.
	 * Short writes go inline, and need none. */
	struct tq_mr *mr;
	uint64_t len; /* bytes, any number; not looked at for atomic operations */
	/* The peer's memory, and the key of its registration. Atomic operations: a multiple of 8.
	 */
	uint64_t addr;
	uint32_t key;
	uint64_t operand, compare;
	/* Called once, when the operation has ended. error: 0, -EIO: the connection to the peer
	 * failed (the log says how, and names the peer); then nobody knows whether it was done. */
	void (*done)(void *user, int error);
	void *user;
};

/*
 * Starts an operation on the peer's memory, which the adapters carry out; the peer's CPU has no
 * part in it. This process is a peer as others.
 *
 * When done() is called with 0, a read has brought its data, an atomic operation what was there,
 * and a write is complete remotely: the peer's adapter has acknowledged it (IBA 9.7.5.1). So any
 * operation on that memory that is started after that, by this process or by another that has
 * learnt of it, sees it, as does the peer's CPU when it has received a message that was sent after
 * it (IBA 9.5). Operations that are under way together have no order, and those on the same bytes
 * any result; but atomic ones are atomic with one another (tq_rma_atomics()), and 8 bytes at an
 * address that is a multiple of 8 are written together.
 *
 * 0: done() will be called, by a thread that is in tq_progress(), tq_flush(), tq_rma_flush() or
 * tq_close(). Else nothing was started: -EINVAL (the kind, no done(), or an atomic operation on an
 * address that is no multiple of 8: IBA 9.7.4.1.5); -ENOMEM, also where the memory here can't be
 * registered; -EIO: the peer has failed; -EOPNOTSUPP: the adapter has no atomic operations. How
 * many are under way is the caller's matter; those that the connection can't take yet wait in the
 * library.
 *
 * An operation on memory that isn't registered (any more), or not with that right, is refused by
 * the peer's adapter and breaks the connection to that peer: that operation, and all others that
 * are under way with it, end with -EIO. Those with others of its node are made anew.
 */
int tq_rma(struct tq_peer *peer, const struct tq_rma *rma);

/*
 * Waits until no operation of tq_rma() on the peer's memory is under way, with NULL on anybody's:
 * also those that other threads start meanwhile. Their done() has been called, or another thread is
 * calling it. -EIO: the peer has failed; with NULL: a connection failed meanwhile.
 */
int tq_rma_flush(struct tq_ep *ep, struct tq_peer *peer);

/* ---- contexts ---- */

/* Assertions of the user's, as MPI 4's mpi_assert_no_any_source and mpi_assert_no_any_tag: such
 * receives and probes won't be posted. They don't concern negative tags. */
#define TQ_CTX_NO_ANY_SOURCE 1u
#define TQ_CTX_NO_ANY_TAG    2u
/* mpi_assert_exact_length: each message is as long as its receive, so receives need no room for
 * more (a message that is longer may break the connection). Neither does it concern negative tags.
 */
#define TQ_CTX_EXACT_LENGTH 4u
/* mpi_assert_allow_overtaking: neither messages nor receives need keep their order. A receive takes
 * what is here and isn't in a tuple's queue, and then needs no recall. Probes keep to MPI's order:
 * a receive with the source and the tag that one has found gets just that message. Neither does it
 * concern negative tags. */
#define TQ_CTX_OVERTAKING 8u

/*
 * An open context: its ranks are this process's own, in no relation to those of others. Peers join
 * it one after the other (tq_ctx_join()), or by their first message to it, and leave it when they
 * are removed. For users who address processes and not groups.
 */
#define TQ_CTX_OPEN 16u

/*
 * A context: `id` is the same at all its processes (as MPI's context id) and not in use in this
 * endpoint; peers[r] is the process of rank r that receives name as their source and sends as their
 * target (of an intercommunicator: the remote group's); `rank` is this process's rank as those
 * peers see it. peers[] is copied. Messages that came for `id` before are taken up.
 */
int tq_ctx_add(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers, int rank,
	       unsigned flags, struct tq_ctx **ctx);

/* Returns the rank of the peer in an open context, which it joins if it has not yet. -ENOMEM;
 * -EINVAL: the context isn't open. */
int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer);

/* Changes the flags (TQ_CTX_*), but for TQ_CTX_OPEN. */
void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags);

/* Ends a context. Operations that are under way end as if it were still there; then it goes. */
void tq_ctx_remove(struct tq_ctx *ctx);

/* ---- messages ---- */

/*
 * A buffer of `len` bytes of message. Without `ops` it is contiguous at addr. With them the memory
 * is any way the caller likes, and is read and written by pack() and unpack(), which move bytes
 * [offset, offset + len) of the message; they are called by threads that are in a function of this
 * library on behalf of the caller, with the endpoint's lock held, in order of growing offsets
 * starting at 0 (a restart at 0 is possible). They must not call the library.
 */
struct tq_buf_ops {
	void (*pack)(void *arg, uint64_t offset, void *to, size_t len);
	void (*unpack)(void *arg, uint64_t offset, const void *from, size_t len);
};

/*
 * Where such memory is a few pieces, the caller can name them too, in the message's order: then
 * the HCA gathers and scatters them, where it can, and nothing is copied. How many are worth it
 * says tq_max_pieces(); with more than that they are not looked at. The array is the caller's, and
 * stays until the operation has ended.
 */
#define TQ_MAX_PIECES 15 /* of any endpoint */
struct tq_piece {
	void *addr;
	uint64_t len;
};

struct tq_buf {
	void *addr;
	uint64_t len;
	const struct tq_buf_ops *ops;
	void *arg;
	const struct tq_piece *pieces; /* with ops; `len` bytes in all */
	unsigned npieces;              /* 0: not known, or too many */
};

/* Pieces that a message, or a buffer, of `len` bytes may have; 0: it is copied in any case. */
unsigned tq_max_pieces(const struct tq_ep *ep, uint64_t len);

#define TQ_SEND_SYNC  1u /* ends only when its receive has started, or tq_mprobe() has taken it */
#define TQ_SEND_NOTUP 2u /* the tag is used once: the message never asks for a tuple queue */
/* send_pending() of struct tq_job makes the `user`, and only if the send doesn't end at once */
#define TQ_SEND_DEFER_USER 4u
#define TQ_SEND_PATIENT    8u /* the caller waits for the end in any case */

/*
 * Starts to send. 1: it has ended, successfully, and there is no request; 0: *req is under way,
 * until complete() is called with `user`, after which *req is gone; <0: it could not be started
 * (-EINVAL: rank; -ENOMEM; -EIO: the peer has failed). A message of at most eager_limit bytes
 * (parameter) without TQ_SEND_SYNC ends when it is started, unless the pool of copies is empty.
 *
 * TQ_SEND_DEFER_USER is for a caller whose record of a send is costly, as most short sends need
 * none: send_pending() is called before the message is sent, at most once. If the send fails after
 * that, complete() is not called, and what send_pending() returned is the caller's again.
 *
 * TQ_SEND_PATIENT is for a caller that does nothing until the send has ended. With tuple queues
 * such messages below copy_limit bytes end when they are started, too. A short message for which
 * the peer has no buffer at the moment would take of the pool of copies until it is received, and
 * half of that pool is left to callers that can't wait. So tq_send() makes progress, which calls
 * complete() of other requests, until the peer has a buffer again or the pool has room.
 */
int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req);

/* Starts to receive; results as tq_send(), and -EBADMSG: TQ_ANY_TAG where TQ_CTX_NO_ANY_TAG says
 * that there is none (-EINVAL also: TQ_ANY_SOURCE where TQ_CTX_NO_ANY_SOURCE does). When 1 is
 * returned, *status is filled in. rank: a rank or TQ_ANY_SOURCE. */
int tq_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
	    struct tq_req **req, struct tq_status *status);

/* Cancels a receive that has not matched yet: complete() is called with -ECANCELED then, else it
 * ends as ever. Sends are never cancelled (-ENOTSUP). `req` must not have completed: the caller
 * sees to it that no other thread is completing it. */
int tq_cancel(struct tq_req *req);

/* Ends with `error` (a negative errno) each receive with this tag in the context of that number
 * that has not matched yet, as tq_cancel() does with -ECANCELED: for a user who learns that the
 * messages won't come. */
void tq_end_receives(struct tq_ep *ep, uint32_t ctx, int32_t tag, int error);

/* Is there a message that a receive of this kind would take? 1: yes, *status says which; 0: no, or
 * not known yet: call again; -EINVAL, -EBADMSG, -ENOMEM as tq_recv(). Makes progress. */
int tq_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status);

/* As tq_probe(), but takes the message out of the queues: it is received by tq_mrecv(), once. */
int tq_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
	      struct tq_msg **msg);
int tq_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
	     struct tq_status *status);

/* Looks for what has happened, does what is to be done, and calls complete(). Returns how many
 * events it has seen. Returns at once with 0 when another thread is at it. */
int tq_progress(struct tq_ep *ep);

/* Waits until all that was sent by this endpoint is delivered. -EIO: a connection failed meanwhile.
 */
int tq_flush(struct tq_ep *ep);

/* ---- what was matched where (for reports) ---- */

struct tq_tuple_info {
	uint32_t ctx;
	int32_t source, tag;
	uint64_t direct;      /* messages that the HCA matched */
	uint64_t traditional; /* messages that the library matched */
	uint32_t promotions, recalls;
};

/* Fills in up to n of the tuples known at this process as receiver, the busiest first; returns how
 * many. */
int tq_tuple_infos(struct tq_ep *ep, struct tq_tuple_info *info, int n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
