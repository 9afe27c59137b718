/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtupleq: two-sided messages with MPI's matching, matched by the InfiniBand adapter (HCA).
 *
 * Messages are matched on the tuple (context, source, tag). A tuple in use gets an XRC shared
 * receive queue (SRQ) of its own. The receiver's buffers are posted to that queue, and the sender's
 * HCA sends to it. So the adapters do the matching for messages of every size, without a copy, a
 * control message or a CPU (M. J. Koop, J. K. Sridhar, D. K. Panda, "TupleQ: Fully-Asynchronous and
 * Zero-Copy MPI over InfiniBand", 2009). The library needs libibverbs and no MPI.
 *
 * Errors: functions return 0 (or a count) or a negative errno. If the user can do something about
 * an error, the log function of struct tq_job gets a sentence that says what.
 *
 * Threads: every function may be called by any thread, unless its comment says otherwise. Callbacks
 * are called by threads that are in tq_progress() or in a function that makes progress: tq_send(),
 * tq_recv(), tq_probe(), tq_mprobe(), tq_mrecv(), tq_flush(), tq_rma_flush(), tq_peer_remove(),
 * tq_peers_remove(), tq_close(), tq_send_bits() and tq_entry_append(); with tq_thread_progress()
 * also by the service thread. No lock is held, so callbacks may call the library, unless their
 * comment says otherwise.
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
/* Matches tags of 0 and above. Negative tags are for the caller's own messages, such as those of
 * MPI's collectives. */
#define TQ_ANY_TAG INT32_MIN

struct tq_ep;   /* this process on one port of an HCA */
struct tq_peer; /* another process */
struct tq_ctx;  /* a context of matching, like an MPI communicator */
struct tq_req;  /* an operation under way */
struct tq_msg;  /* a message taken from the queues by a matched probe */

/* ---- parameters ---- */

enum tq_param_type {
	TQ_PARAM_BOOL,
	TQ_PARAM_INT,  /* int64_t */
	TQ_PARAM_SIZE, /* int64_t, bytes; may be written as "8K" or "1M" */
	TQ_PARAM_ENUM, /* one of `choices` */
	TQ_PARAM_STRING
};

struct tq_param_desc {
	const char *name;
	enum tq_param_type type;
	const char *value;   /* default, as a string */
	int64_t min, max;    /* TQ_PARAM_INT and TQ_PARAM_SIZE */
	const char *choices; /* TQ_PARAM_ENUM: names separated by '|'; TQ_PARAM_STRING: its form */
	int level;           /* MPI_T verbosity 1 (user, basic) to 9 (developer, all) */
	const char *help;
};

struct tq_params; /* a value for each parameter */

/* Returns the description of parameter `i`, in static memory, or NULL if there are no more. */
const struct tq_param_desc *tq_param_desc(unsigned i);

/* Returns parameters with their defaults, or NULL without memory. The caller frees them with
 * tq_params_free(). */
struct tq_params *tq_params_new(void);
void tq_params_free(struct tq_params *params);

/* Sets a parameter from a string. Returns 0, -ENOENT if there is no such parameter, or -EINVAL if
 * `value` isn't valid or out of range. On an error `why`, if not NULL, receives a sentence, which
 * is cut to `size` bytes. */
int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size);

/* ---- counters ---- */

struct tq_counter_desc {
	const char *name;
	bool level; /* a current value with a high-water mark, else a value that only grows */
	const char *help;
};

/* Returns the description of counter `i`, in static memory, or NULL if there are no more. */
const struct tq_counter_desc *tq_counter_desc(unsigned i);

/* Returns the value of counter `i`. Neither function waits; both may lag behind by an operation. */
uint64_t tq_counter(const struct tq_ep *ep, unsigned i);
/* Returns the highest value so far of a level. */
uint64_t tq_counter_high(const struct tq_ep *ep, unsigned i);

/* ---- memory registration ---- */

/* A registration with the adapter. */
struct tq_mr;

/*
 * A registration cache of the caller's, used for user buffers.
 *
 * get() returns a registration that covers [addr, addr + len), for receives if `write` is true,
 * else for sends. The registration stays valid until put() is called with its cookie. NULL means
 * that the buffer can't be registered; the library then takes a slower path. A cache makes
 * registrations with tq_mr_register() and ends them with tq_mr_deregister().
 *
 * make_room() ends one or more registrations that no cookie stands for, and returns true; false
 * means that there is none. The library calls it when other memory can't be registered for lack of
 * memory or of registrations, and then tries again. May be NULL.
 *
 * The functions are called with the endpoint's lock held and must not call other functions of the
 * library.
 */
struct tq_mr_cache {
	struct tq_mr *(*get)(void *arg, void *addr, size_t len, bool write, void **cookie);
	void (*put)(void *arg, void *cookie);
	bool (*make_room)(void *arg);
	void *arg;
};

/*
 * Registers memory that the adapter may read, locally and for peers. With `write` it may also
 * write, so the process must be able to. Returns 0, -ENOMEM (the limit of locked memory, or that of
 * the adapter), -EINVAL or -EFAULT. Neither function takes a lock of the endpoint or asks the cache
 * for room, because caches call them; others register memory with tq_mr_expose().
 */
int tq_mr_register(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_mr **mr);
void tq_mr_deregister(struct tq_mr *mr);

/* Counts, for a cache, a registration that get() could no longer return because a part of its
 * memory had changed, while operations still used it. */
void tq_mr_count_outdated(struct tq_mr *mr);

/* Leaves a registration to the endpoint, which ends it when it is closed. Called instead of
 * tq_mr_deregister() for memory that a peer may still write to: a write to memory that isn't
 * registered breaks the peer's connection to this process. The memory must stay mapped until the
 * endpoint is closed. */
void tq_mr_abandon(struct tq_ep *ep, struct tq_mr *mr);

/* ---- endpoints and peers ---- */

enum tq_log_level { TQ_LOG_ERROR, TQ_LOG_WARN, TQ_LOG_INFO, TQ_LOG_DEBUG };

/* The result of a request. The fields behind `error` are set for receives. */
struct tq_status {
	int error;       /* 0; -EMSGSIZE: the message was longer than the buffer, which holds its
			    beginning; -ECANCELED; -EIO: the connection to the peer, or the adapter,
			    failed (the log says how); -ENOMEM; or the error of tq_ctx_revoke()
			    or tq_end_receives() */
	int32_t source;  /* the sender's rank in the context */
	int32_t tag;     /* the message's tag */
	uint64_t length; /* the message's whole length in bytes, even if it was truncated */
};

/* The job of a process, and the callbacks of the library. tq_open() copies it. */
struct tq_job {
	/* A number that all processes of the job have. Processes of a node share an XRC domain. */
	uint64_t key;
	/* A directory of this user on this host, for the file (mode 0600) that stands for the XRC
	 * domain. */
	const char *dir;
	/* The name of this process in messages: "rank 3 on host n1". */
	const char *name;
	/* Takes a line of text without its newline. Called by any thread, possibly with locks held,
	 * so it must not call the library. Never NULL. */
	void (*log)(void *arg, enum tq_log_level level, const char *text);
	void *log_arg;
	/* Returns true if this process is to give a warning about the host, which all processes of
	 * the host could give; `kind` is its short name. Called as log() is, with the same `arg`.
	 * NULL: each process gives it. */
	bool (*claim_warning)(void *arg, const char *kind);
	/* Ends a request; `user` is the argument that the request was started with. Not called for
	 * a request that has ended when it is started. */
	void (*complete)(void *user, const struct tq_status *status);
	/* Returns the `user` for complete() of a send with TQ_SEND_DEFER_USER that doesn't end when
	 * it is started; the argument is the one that the send was started with. If this returns
	 * NULL for lack of memory, the send isn't started. Called by the thread that is in
	 * tq_send(), with the endpoint's lock held, so it must not call the library. May be NULL if
	 * no send has that flag. */
	void *(*send_pending)(void *user);
};

/*
 * Opens a device and creates the endpoint. Among the suitable devices that the parameters allow,
 * InfiniBand comes before RoCE, and then the nearest to this process. `params` are copied; `cache`
 * may be NULL. Returns 0; -ENODEV if there is no device, or none with XRC and an active port;
 * -ENOMEM without memory, or if the process may not lock enough; -EINVAL if the device can't
 * satisfy a parameter; -EAGAIN, -EMFILE or -ENFILE if the service thread can't be started. The log
 * gets a sentence, unless there is no memory for one.
 */
int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep);

/* A port of an adapter that tq_open() could open. */
struct tq_port {
	char device[64]; /* "DEVICE:NUMBER" is a value for the parameter if_include */
	unsigned number;
	bool infiniband; /* otherwise RoCE */
	uint32_t mtu;    /* bytes */
	uint64_t speed;  /* bits in a second */
};

/* Lists up to `room` of the ports that the parameters allow and that tq_open() could open, in the
 * order in which it would choose them. The log of `job` is used, and no other field of it. Returns
 * how many it has listed, or tq_open()'s errors. */
int tq_ports(const struct tq_params *params, const struct tq_job *job, struct tq_port *ports,
	     unsigned room);

/*
 * Waits until all messages that were sent are delivered, held and copied ones included. Then ends
 * the endpoint with its contexts and peers, and drops receives that are still posted. Peers must
 * not close their endpoints before that, so the caller needs a barrier first, like that of
 * MPI_Finalize. In a forked child tq_close() does nothing, because the endpoint is the parent's.
 */
void tq_close(struct tq_ep *ep);

/* Returns the address by which other processes reach this one, for the caller to publish. The
 * endpoint owns it. */
const void *tq_address(const struct tq_ep *ep, size_t *len);

/* Returns a line about the device in use, e.g. "softhca0 port 1 (LID 3), 4096-byte MTU, null MR,
 * implicit ODP". The endpoint owns it. */
const char *tq_device_text(const struct tq_ep *ep);

/*
 * Adds a peer by its address; `name` is for messages. Either side connects on first use. This
 * process itself is a peer like others. Returns 0; -EPROTO if this isn't an address of this version
 * of the library; -EEXIST if a peer with this address was added already; -ENETUNREACH if the peer
 * has another link layer, another kind of RoCE address or another subnet; -ENOMEM. Returns
 * 0 also if the process had asked for a connection that has failed since: then the log names the
 * peer, and operations with it end with -EIO.
 */
int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer);

/* Waits until all messages to the peer are delivered, then removes the peer. No context may contain
 * the peer any more, unless the context is open (TQ_CTX_OPEN) or was removed. */
void tq_peer_remove(struct tq_peer *peer);
/* Removes several peers of one endpoint, and waits for all of them together. */
void tq_peers_remove(struct tq_peer *const peers[], size_t n);

/*
 * Other parts of the process may use an endpoint and its peers, too. The caller that opened or
 * added them still owns them, and must not close or remove them while they are in use.
 */
/* Returns the endpoint that is open in this process for the job `key`, the oldest if there are
 * several, or NULL. */
struct tq_ep *tq_find(uint64_t key);
/* Returns the peer that was added with this address, or NULL. */
struct tq_peer *tq_peer_find(struct tq_ep *ep, const void *address, size_t len);

/*
 * The node of an address: a port of an adapter and an XRC domain, so not the host's name. Processes
 * with equal bytes are on one node, and hence on one host.
 */
struct tq_node_id {
	uint8_t bytes[24];
};
/* Returns 0, or -EPROTO if this isn't an address. */
int tq_address_node(const void *address, size_t len, struct tq_node_id *node);

/*
 * Starts to connect to the peer, and doesn't wait. Once connected, this process notices the peer's
 * failure (parameter keepalive) even if it sends the peer nothing.
 */
void tq_peer_connect(struct tq_peer *peer);
/*
 * Ends the communication with a process of which the caller knows that it has failed, before the
 * connection shows it: operations that are under way end with -EIO, after the log has said why.
 * Doesn't wait.
 */
void tq_peer_give_up(struct tq_peer *peer, const char *why);
/* Returns 0, -EIO if the connection has failed (the log says how), or -ESHUTDOWN if the peer has
 * closed its endpoint. */
int tq_peer_error(struct tq_peer *peer);

/* ---- writing into a peer's memory ---- */

/* Returns the key with which a peer can write into registered memory. */
uint32_t tq_mr_key(const struct tq_mr *mr);

#define TQ_PUT_MAX 8192

/*
 * Writes `len` bytes (at most TQ_PUT_MAX) to `addr` in memory that the peer has registered
 * (tq_mr_register(), tq_mr_key()). The data are copied, so the caller may reuse the buffer at once.
 * The arrival isn't reported; tq_flush() waits for it.
 *
 * The peer's CPU takes no part. The bytes of puts may become visible in any order, with one
 * exception: 8 bytes at an address that is a multiple of 8 appear together. So each such word must
 * show by itself that it has arrived.
 *
 * Returns 0; -EIO if the peer has failed; -EINVAL if `len` is too large; -ENOMEM; -EAGAIN if 65536
 * puts wait for this peer, so that the caller must call tq_progress() first. A put waits in the
 * library while the connection is being made or its queue is full; the service thread or a later
 * call sends it. tq_put() may handle events of the adapter, which calls no complete(). A put to
 * memory that isn't registered breaks the connection to the peer; connections to other processes of
 * its node are then made anew.
 */
int tq_put(struct tq_peer *peer, const void *data, size_t len, uint64_t addr, uint32_t key);

/* ---- memory that processes of a host share ---- */

/*
 * A segment: memory of `len` bytes or a little more, at the start of a page, zero at first. Other
 * processes of this user attach it by its name, which is never 0, as long as one process has it.
 * The kernel frees a segment with its last process, however that ends, so none is ever left. A
 * forked child doesn't have its parent's segments.
 */
/* Creates a segment. Returns 0, or -errno: -ENOSPC or -ENOMEM at a limit of the host. */
int tq_segment_create(size_t len, uint64_t *name, void **mem);
/* Attaches a segment, and returns its bytes in *len. Returns 0, or -errno: -EINVAL if there is no
 * such segment, -EACCES or -EPERM if it is another user's, and -ESTALE if another segment has its
 * number here, for instance in a container that doesn't share the creator's IPC namespace. */
int tq_segment_attach(uint64_t name, size_t *len, void **mem);
/* Gives up a segment that this process created or attached. */
void tq_segment_detach(void *mem);

/* ---- reading, writing and changing a peer's memory ---- */

/*
 * Registers memory for tq_rma() of peers, with the rights in `access`. The memory must stay mapped
 * until tq_mr_deregister(), and no operation may be under way there by then. The caller tells its
 * peers the address and tq_mr_key(). The key ends with the registration.
 *
 * Returns 0; -ENOMEM (the limit of locked memory, or that of the adapter); -EINVAL (`access` is
 * wrong, or no memory is mapped there); -EFAULT; or -EOPNOTSUPP (the adapter has no atomic
 * operations). Before -ENOMEM the cache has been asked to make room, with the endpoint's lock, so
 * the caller must not hold a lock that the cache takes.
 */
#define TQ_ACCESS_READ   1u
#define TQ_ACCESS_WRITE  2u
#define TQ_ACCESS_ATOMIC 4u
int tq_mr_expose(struct tq_ep *ep, void *addr, size_t len, unsigned access, struct tq_mr **mr);

/* A registration by which peers may read memory, and write it if that was asked for. */
struct tq_key {
	uint32_t key; /* for tq_rma() of peers */
	void *registration, *cookie;
};

/*
 * Returns in *key a registration of the buffer of one message, by the cache if there is one. The
 * memory must stay mapped until tq_key_put(). Returns 0; -ENOMEM if the memory can't be
 * registered; or -EINVAL if `len` is 0.
 */
int tq_key_get(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_key *key);
void tq_key_put(struct tq_ep *ep, const struct tq_key *key);

/* The accesses with which the adapter's atomic operations are atomic (atomic_cap of
 * ibv_query_device(3)). */
enum tq_atomics {
	TQ_ATOMICS_NONE,    /* the adapter has no atomic operations */
	TQ_ATOMICS_ADAPTER, /* other atomic operations of the same adapter */
	TQ_ATOMICS_ALL      /* also those of CPUs and of other devices */
};
/* Returns the value for the endpoint's adapter. */
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
	/* Local memory: the source of a write, the target of a read, 8 bytes for the old value of
	 * an atomic operation. The library's until done(). */
	void *local;
	/* A registration of the local memory: with `write` (tq_mr_register()) or TQ_ACCESS_WRITE,
	 * unless the operation is a write. If it is NULL the library registers the memory, by the
	 * cache if there is one; short writes are sent inline and need no registration. */
	struct tq_mr *mr;
	uint64_t len; /* any number of bytes; ignored for atomic operations */
	/* The peer's memory, and the key of its registration. The address of an atomic operation is
	 * a multiple of 8. */
	uint64_t addr;
	uint32_t key;
	uint64_t operand, compare;
	/* Called once, when the operation has ended. `error` is 0, or -EIO if the connection to the
	 * peer failed. The log then says how and names the peer, and the operation may or may not
	 * have been carried out. */
	void (*done)(void *user, int error);
	void *user;
};

/*
 * Starts an operation on the peer's memory. The adapters carry the operation out; the peer's CPU
 * takes no part. This process is a peer like others.
 *
 * When done() is called with 0, a read has delivered its data, an atomic operation has delivered
 * the old value, and a write is complete remotely: the peer's adapter has acknowledged it (IBA
 * 9.7.5.1). Operations on that memory that are started later, by any process, see the result. So
 * does the peer's CPU once it has received a message that was sent later (IBA 9.5). Operations that
 * are under way together have no order, and may leave any result in the bytes that they share. But
 * atomic operations are atomic with one another (tq_rma_atomics()), and 8 bytes at an address that
 * is a multiple of 8 are written together.
 *
 * Returns 0 if done() will be called. Otherwise nothing was started: -EINVAL (the kind is unknown,
 * done() is missing, or the address of an atomic operation is no multiple of 8: IBA 9.7.4.1.5);
 * -ENOMEM (no memory, or the local memory can't be registered); -EIO (the peer has failed);
 * -EOPNOTSUPP (the adapter has no atomic operations). Any number of operations may be under way;
 * those that the connection can't take yet wait in the library.
 *
 * The peer's adapter refuses an operation on memory that isn't registered with the right for it.
 * That breaks the connection to the peer: the operation, and all others that are under way with
 * this peer, end with -EIO. Connections to other processes of the peer's node are made anew.
 */
int tq_rma(struct tq_peer *peer, const struct tq_rma *rma);

/*
 * Waits until no operation on the peer's memory (NULL: on any peer's) is under way, including those
 * that other threads start meanwhile. Their done() has been called, or another thread is calling
 * it. Returns 0; -EIO if the peer has failed, or with NULL if a connection failed meanwhile; or
 * -EPERM in a forked child.
 */
int tq_rma_flush(struct tq_ep *ep, struct tq_peer *peer);

/* ---- contexts ---- */

/* Assertions of a context, after those of MPI 4. They don't concern negative tags. */
/* As mpi_assert_no_any_source and mpi_assert_no_any_tag: no such receive or probe will be posted.
 */
#define TQ_CTX_NO_ANY_SOURCE 1u
#define TQ_CTX_NO_ANY_TAG    2u
/* As mpi_assert_exact_length: each message is as long as its receive, so receives need no room for
 * longer ones. A longer message may break the connection. */
#define TQ_CTX_EXACT_LENGTH 4u
/* As mpi_assert_allow_overtaking: messages and receives needn't keep their order. A receive takes a
 * message that has arrived and isn't in a tuple's queue, without a recall. Probes keep MPI's order:
 * a receive with the source and the tag that a probe has found gets that message. */
#define TQ_CTX_OVERTAKING 8u

/*
 * An open context: its ranks are this process's own, in no relation to those of others. Peers join
 * it one after the other (tq_ctx_join()), or by their first message to it, and leave it when they
 * are removed. For users who address processes and not groups.
 */
#define TQ_CTX_OPEN 16u

/*
 * Adds a context. All its processes use the same `id` (like MPI's context id), which must not be in
 * use in this endpoint. peers[r] is the process of rank r, the source of receives and the target of
 * sends; in an intercommunicator it is a process of the remote group. `rank` is this process's rank
 * as those peers see it. peers[] is copied. Messages that have already arrived for `id` are
 * delivered. Returns 0; -EINVAL if npeers is negative or id is in use; or -ENOMEM.
 */
int tq_ctx_add(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers, int rank,
	       unsigned flags, struct tq_ctx **ctx);

/* Returns the rank of the peer in an open context, after adding the peer if it isn't there yet;
 * -ENOMEM; or -EINVAL if the context isn't open. */
int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer);

/* Changes the flags (TQ_CTX_*), but for TQ_CTX_OPEN. */
void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags);

/* Removes a context. Operations under way still end; the context is freed after them. */
void tq_ctx_remove(struct tq_ctx *ctx);

/*
 * Revokes a context, as MPIX_Comm_revoke() does, or with `only_negative` its negative tags:
 * receives that haven't matched end with `error`, and receives, probes and sends that are started
 * later return it. `error` is a negative errno other than -EIO. Messages that have come or that
 * come later are dropped; for their senders they are received. So if each process of the context
 * revokes it, unless it has failed, no operation there waits for ever.
 *
 * A context that was revoked may be removed before all messages have come. The id stays the
 * context's, to drop them, until another context is added with that id: messages that come later
 * are for the new one.
 */
void tq_ctx_revoke(struct tq_ctx *ctx, bool only_negative, int error);

/* ---- messages ---- */

/*
 * Access to a buffer that isn't contiguous. pack() and unpack() move bytes [offset, offset + len)
 * of the message. They are called by threads that are in a function of the library, with the
 * endpoint's lock held, so they must not call the library. Offsets grow from 0, and may start over
 * at 0.
 */
struct tq_buf_ops {
	void (*pack)(void *arg, uint64_t offset, void *to, size_t len);
	void (*unpack)(void *arg, uint64_t offset, const void *from, size_t len);
};

/*
 * A piece of memory. If such a buffer consists of a few pieces, the caller can list them in the
 * message's order. The HCA then gathers and scatters them if it can, without a copy. Lists of more
 * than tq_max_pieces() are ignored. The caller owns the array, and must keep it until the operation
 * has ended.
 */
#define TQ_MAX_PIECES 15 /* the most of any endpoint */
struct tq_piece {
	void *addr;
	uint64_t len;
};

/* A buffer for a message of `len` bytes, contiguous at addr if `ops` is NULL. */
struct tq_buf {
	void *addr;
	uint64_t len;
	const struct tq_buf_ops *ops;
	void *arg;
	const struct tq_piece *pieces; /* only with ops; `len` bytes in all */
	unsigned npieces;              /* 0: unknown, or too many */
};

/* Returns how many pieces a buffer of `len` bytes may have, or 0 if it is copied in any case. */
unsigned tq_max_pieces(const struct tq_ep *ep, uint64_t len);

/* The send ends only when its receive has started, or tq_mprobe() has taken the message. */
#define TQ_SEND_SYNC 1u
/* The send ends only when the data are in the receiving process: in the buffer of a receive, or in
 * memory of the library. */
#define TQ_SEND_DELIVERED 128u
/* The tag is used once, so the message never requests a tuple queue. */
#define TQ_SEND_NO_QUEUE 2u
/* send_pending() of struct tq_job makes the `user`, and only if the send doesn't end at once. */
#define TQ_SEND_DEFER_USER 4u
/* The caller waits for the end in any case. */
#define TQ_SEND_PATIENT 8u
/* For its user the send has ended: the buffer, which has no `ops`, is a copy in the host's memory
 * that stays as it is until complete(), and that a thread of the library may read. So the message
 * arrives even if this process makes no further call. */
#define TQ_SEND_BUFFERED 32u

/*
 * Starts a send. Returns 1 if it has ended successfully: there is no request. Returns 0 if *req is
 * under way, until complete() is called with `user`; *req is gone after that. Returns a negative
 * errno if it could not be started: -EINVAL (the context has no such rank, that peer was removed,
 * the tag is TQ_ANY_TAG, the context has match bits, or a buffered message has `ops`), -ENOMEM or
 * -EIO (the peer has failed). A message of at most eager_limit bytes (parameter) without
 * TQ_SEND_SYNC or TQ_SEND_DELIVERED ends when it is started, unless the pool of copies is empty.
 *
 * A message whose send has ended arrives even if this process makes no further call, unless there
 * is no service thread (parameter service_thread).
 *
 * TQ_SEND_DEFER_USER is for a caller whose record of a send is costly, because most short sends
 * need none. send_pending() is called at most once, before the message is sent. If the send fails
 * after that, complete() isn't called, and the caller owns the result of send_pending() again.
 *
 * TQ_SEND_PATIENT is for a caller that does nothing until the send has ended. With tuple queues
 * messages below copy_limit bytes also end when they are started. If the peer has no buffer for a
 * short message, a copy would occupy the pool until the message is received, and half of the pool
 * is reserved for callers that can't wait. So tq_send() makes progress, which calls complete() of
 * other requests, until the peer has a buffer or the pool has room.
 */
int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req);

/* Starts a receive from a rank or from TQ_ANY_SOURCE. Returns tq_send()'s results, and fills in
 * *status if the result is 1. Returns -EINVAL also for TQ_ANY_SOURCE in a context with
 * TQ_CTX_NO_ANY_SOURCE, and -EBADMSG for TQ_ANY_TAG in one with TQ_CTX_NO_ANY_TAG. */
int tq_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
	    struct tq_req **req, struct tq_status *status);

/* Cancels a receive. If it hasn't matched yet, complete() is called with -ECANCELED; otherwise it
 * ends normally. Sends can't be cancelled (-ENOTSUP). `req` must not have completed, so the caller
 * makes sure that no other thread completes it meanwhile. */
int tq_cancel(struct tq_req *req);

/* Ends with `error` (a negative errno) each receive with this tag in context `ctx` that hasn't
 * matched yet. The caller has learnt that the messages won't come. */
void tq_end_receives(struct tq_ep *ep, uint32_t ctx, int32_t tag, int error);

/* Looks for a message that a receive with these arguments would take, and makes progress. Returns 1
 * if there is one, which *status describes; 0 if there is none, or if that isn't known yet and the
 * caller should try again; or an error of tq_recv(). */
int tq_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status);

/* Looks for a message like tq_probe(), and takes it out of the queues. Each message is received
 * once, by tq_mrecv(), which returns what tq_recv() returns; after -ENOMEM the message can still be
 * received. */
int tq_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
	      struct tq_msg **msg);
int tq_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
	     struct tq_status *status);

/* Handles the events of the adapter, and calls complete(). Returns how many events it has handled,
 * or 0 at once if another thread holds the lock of the endpoint. */
int tq_progress(struct tq_ep *ep);

/* The work of the service thread besides the library's own. */
enum tq_thread_duty {
	TQ_THREAD_OWN, /* nothing */
	/* All that tq_progress() does, callbacks included, whenever something is to be done: for
	 * users who sleep until a callback wakes them. */
	TQ_THREAD_ALL,
	/* The same, but only what others may wait for wakes the thread, and not the end of what
	 * this process has started: for users who ask for that end, and may compute meanwhile.
	 * Waking are: announcements of messages with match bits whose data are to be fetched;
	 * messages of contexts with TQ_CTX_SERVED; and the ends of tq_rma(). */
	TQ_THREAD_SERVED
};

/* Sets the duty of the service thread (parameter service_thread), which is TQ_THREAD_OWN at first.
 * The thread sleeps when nothing is to be done, and lets threads that call tq_progress() come
 * first. With TQ_THREAD_OWN the thread has returned from its callbacks, and calls none from now on:
 * so the caller holds no lock that a callback waits for; called in a callback, it doesn't wait.
 * Returns 0, -ENOTSUP without a service thread, or -EPERM in a forked child. */
int tq_thread_progress(struct tq_ep *ep, enum tq_thread_duty duty);

/* Waits until all messages and puts of this endpoint are delivered. Returns 0; -EIO if a connection
 * has failed meanwhile; or -EPERM in a forked child. */
int tq_flush(struct tq_ep *ep);

/* ---- statistics of tuples, for reports ---- */

struct tq_tuple_info {
	uint32_t ctx;
	int32_t source, tag;
	uint64_t direct;      /* messages that the HCA matched */
	uint64_t traditional; /* messages that the library matched */
	uint32_t promotions, recalls;
};

/* Lists up to `n` of the tuples that this process receives, the busiest first. Returns how many it
 * has listed. */
int tq_tuple_infos(struct tq_ep *ep, struct tq_tuple_info *info, int n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
