/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the component and of its modules, and the functions that its files share. */
#ifndef TUPLEQ_COLL_H
#define TUPLEQ_COLL_H

#include "pml/series.h"

#include <tupleq/tupleq.h>

#include "exchange.h"
#include "notices.h"
#include "nbc.h"
#include "schedule.h"
#include "segment.h"
#include "stamp.h"

/* The number before a communicator's first operation. As with the kernel's jiffies, numbers start
 * close to their wrap, so that every program exercises it. */
#define TUPLEQ_FIRST (UINT64_MAX - 100)

/* The upper bound of the parameter `limit` (bytes): as words, which are half stamps, so much data
 * are one put (TQ_PUT_MAX). */
#define TUPLEQ_LIMIT_MAX 4096

/* The greatest radix of trees, but those of broadcasts of at most BCAST_SHORT bytes: these take the
 * link hardly longer than a write takes the processor (WRITES.md has the measurements). */
enum { TUPLEQ_BCAST_SHORT = 256, TUPLEQ_TREE_RADIX = 4 };

/* The upper bound of the parameter `ring` (entries; nbc.h): there are no tags for more. */
#define TUPLEQ_RING_MAX 64

_Static_assert(TUPLEQ_RING_MAX *TUPLEQ_RINGS + 2 <= SERIES_RING_TAGS, "each entry has tags");

/* The upper bounds of the parameters `queues` (number), and `one_round`, `memory` and `allgather`
 * (bytes): powers of two that an int holds, above what a program comes near. */
#define TUPLEQ_QUEUES_MAX    (1 << 20)
#define TUPLEQ_ONE_ROUND_MAX (1 << 30)
#define TUPLEQ_MEMORY_MAX    (1 << 30)
#define TUPLEQ_ALLGATHER_MAX (1 << 30)

/* The data of an operation and what is done with them. */
struct mca_coll_tupleq_data {
	enum mca_coll_tupleq_kind kind;
	int root;       /* rank */
	const void *in; /* NULL: this process has no input */
	void *out;      /* NULL: this process gets no result */
	size_t len;     /* bytes as they are moved: reductions move gaps, too */
	size_t bytes;   /* as MPI counts them, without gaps */
	/* Only for a reduction: */
	int count;
	ompi_datatype_t *type;
	struct ompi_op_t *op;
	ompi_communicator_t *comm;
};

enum mca_coll_tupleq_phase {
	TUPLEQ_ENTER, /* leader: waits for the processes of its node; others: announce themselves */
	TUPLEQ_NETWORK, /* leader: takes the steps between nodes */
	TUPLEQ_LEAVE    /* others: wait until the leader releases them */
};

/* An operation under way. */
struct mca_coll_tupleq_op {
	uint64_t number;
	struct mca_coll_tupleq_data *data; /* NULL: a barrier */
	int buffer;                        /* index of the buffers of its data and of its stamps */
	uint32_t stamp;                    /* stamp to send; the root's if lengths differ */
	size_t len;                        /* bytes to send */
	bool differs;                      /* another process has another length */
	enum mca_coll_tupleq_phase phase;
	int awaits;           /* index of the process or step that the phase waits for */
	size_t words_arrived; /* words of the current step's message that have arrived */
	/* Only on a leader: */
	bool is_packed;  /* the group's `outgoing` has the data of its `accumulator` */
	bool has_before; /* the group's `before` has data */
	int rc;
	_Atomic bool ended;
	struct mca_coll_tupleq_ibarrier_request
		*request; /* NULL: blocking, on its caller's stack */
	struct mca_coll_tupleq_op *next, *prev;
};

/* The request of an MPI_Ibarrier. */
struct mca_coll_tupleq_ibarrier_request {
	ompi_request_t super;
	struct mca_coll_tupleq_op op;
	struct mca_coll_tupleq_exchange exchange; /* used on a communicator without a segment */
	int tag;                                  /* of the exchange */
	ompi_communicator_t *comm;
};

/* A node of a communicator, as the leaders of other nodes address it. */
struct mca_coll_tupleq_node {
	struct tq_peer *leader;
	uint64_t addr; /* of the segment in the leader's memory */
	uint32_t key;
	struct mca_coll_tupleq_notice notice; /* the leader's */
};

/* The location of a rank. */
struct mca_coll_tupleq_location {
	int node;
	int local; /* index among the node's processes */
};

/* The processes and the memory of a communicator after its set-up. */
struct mca_coll_tupleq_group {
	int local_rank;               /* index of this process on its node; 0 is the leader */
	struct tq_peer **local_peers; /* of the node's processes; those that this one waits for */
	struct mca_coll_tupleq_shape shape;
	struct mca_coll_tupleq_segment *segment;
	struct mca_coll_tupleq_call *calls; /* this process's part of the segment */
	int nnodes;
	struct tq_ep *ep;
	/* Only on a leader: */
	struct tq_mr *mr;
	struct mca_coll_tupleq_notice notice; /* words that other leaders write to */
	struct mca_coll_tupleq_node *nodes;
	int node;                                   /* index of the own node */
	struct mca_coll_tupleq_location *locations; /* by rank */
	int radix, short_radix;                     /* of trees, and of those of short broadcasts */
	/* The result so far, what nodes before this one have added to it, and the next operand. */
	void *accumulator, *before, *incoming;
	uint64_t *outgoing; /* the message of a step */
	/* The last fields, because they are large: without steps only their numbers of steps have a
	 * value. `tree` is of the operation under way. */
	struct mca_coll_tupleq_path barrier, reduction, tree;
};

/* Clears the group of a module that has not been set up. Most communicators never are. */
static inline void mca_coll_tupleq_group_clear(struct mca_coll_tupleq_group *group)
{
	memset(group, 0, offsetof(struct mca_coll_tupleq_group, barrier));
	group->barrier.nsteps = group->reduction.nsteps = group->tree.nsteps = 0;
}

/* The function and the module of the component with the next lower priority. */
#define TUPLEQ_NEXT(name)                              \
	struct {                                       \
		mca_coll_base_module_##name##_fn_t fn; \
		mca_coll_base_module_t *module;        \
	} name

enum mca_coll_tupleq_state {
	TUPLEQ_NEW,        /* the first operation starts the set-up */
	TUPLEQ_SETTING_UP, /* operations wait for the set-up */
	TUPLEQ_READY,
	TUPLEQ_DECLINED /* a process can't take part: everything goes by messages */
};

/* The operation that a process was in when mismatch.c last looked. */
struct mca_coll_tupleq_last_seen {
	bool is_in; /* there was one */
	uint64_t number;
};

/* A ring of tags of a communicator. */
struct mca_coll_tupleq_ring {
	uint64_t called;                                      /* operations so far */
	struct mca_coll_tupleq_nbc *entries[TUPLEQ_RING_MAX]; /* lists; only the first one of each
								   is started */
};

struct mca_coll_tupleq_module {
	mca_coll_base_module_t super;
	ompi_communicator_t *comm;
	struct {
		TUPLEQ_NEXT(barrier);
		TUPLEQ_NEXT(allreduce);
		TUPLEQ_NEXT(bcast);
		TUPLEQ_NEXT(reduce);
		TUPLEQ_NEXT(alltoallv);
		TUPLEQ_NEXT(allgather);
		TUPLEQ_NEXT(allgatherv);
	} next;
	_Atomic int state; /* enum mca_coll_tupleq_state; written under mca_coll_tupleq.lock */
	struct mca_coll_tupleq_group group;
	/* mca_coll_tupleq.lock guards the rest, down to the fields of nbc.c. */
	struct mca_coll_tupleq_setup *setup; /* NULL: not under way */
	uint64_t number;                     /* of the last operation that was started */
	int bcasts, reduces;                 /* since the last synchronizing operation */
	bool odd_synchronizing;         /* the last synchronizing operation had the second buffer */
	int failed;                     /* 0; -EIO: a process has failed; -EPROTO: processes are in
					   different operations */
	struct mca_coll_tupleq_op *ops; /* under way; only the first one advances */
	int nonblocking; /* of `ops`; if not 0, the module is in mca_coll_tupleq.active */
	struct mca_coll_tupleq_module *active_next, *active_prev;
	/* mismatch.c: */
	bool is_delegated;         /* this process is in an operation of the next component, */
	uint64_t delegated_number; /* which has this number */
	struct mca_coll_tupleq_last_seen last_op, last_delegated;
	/* mca_coll_tupleq.ready_lock guards the nodes of the list `ready`. */
	struct mca_coll_tupleq_module *ready_next, *ready_prev, *failed_next;
	/* Guarded by the lock of nbc.c: */
	struct mca_coll_tupleq_ring rings[TUPLEQ_RINGS];
	uint64_t npersistent; /* persistent operations so far */
};
OBJ_CLASS_DECLARATION(mca_coll_tupleq_module_t);
typedef struct mca_coll_tupleq_module mca_coll_tupleq_module_t;

struct mca_coll_tupleq {
	int priority;
	int pattern;   /* enum mca_coll_tupleq_pattern */
	int limit;     /* bytes of data */
	int ring;      /* entries of a ring; 0: the operations of nbc.h go to the next component */
	int queues;    /* that the messages of one length of a communicator may take */
	int one_round; /* bytes that a process sends rather than go through two rounds */
	int alltoallv; /* not 0: the blocking MPI_Alltoallv is done all at once */
	int allgather; /* bytes of a block up to which MPI_Allgather(v) is done all at once */
	int memory;    /* bytes that are kept for later operations (nbc_memory.h) */
	opal_mutex_t lock;
	unsigned long long settled[2];         /* communicators in state DECLINED and READY */
	struct mca_coll_tupleq_module *active; /* list of modules with nonblocking operations */
	_Atomic int nonblocking; /* operations of `active`; also read without the lock */
	bool progressing;        /* mca_coll_tupleq_progress() is registered */
	/* Guards `ready` alone, and is taken last. No function is called with it that may free a
	 * communicator: any call of the PML may, and the PML is called with `lock`. */
	opal_mutex_t ready_lock;
	struct mca_coll_tupleq_module *ready; /* list of modules in state READY */
	bool checks_mismatches;               /* the check of mismatch.c is registered */
	unsigned polls;                       /* calls of mca_coll_tupleq_progress() */
};

extern struct mca_coll_tupleq mca_coll_tupleq;
extern series_coll_component_t mca_coll_tupleq_component;

static inline void mca_coll_tupleq_set_state(struct mca_coll_tupleq_module *module,
					     enum mca_coll_tupleq_state state)
{
	/* release: a reader of the state sees what has been set up. */
	atomic_store_explicit(&module->state, state, memory_order_release);
}

static inline enum mca_coll_tupleq_state
mca_coll_tupleq_state(struct mca_coll_tupleq_module *module)
{
	return (enum mca_coll_tupleq_state)atomic_load_explicit(&module->state,
								memory_order_acquire);
}

/* Sets the functions of a collective's request: the request can't be freed before its end, and
 * can't be cancelled. */
void mca_coll_tupleq_request_construct(ompi_request_t *request);

/* ---- setup.c ---- */
/* Starts to bring a new communicator to READY or DECLINED, the same state on all processes. Returns
 * 0 or -ENOMEM. */
int mca_coll_tupleq_setup_start(struct mca_coll_tupleq_module *module);
/* Advances the set-up. Returns 1 if it has ended, 0 if it hasn't yet, or -errno if it failed. */
int mca_coll_tupleq_setup_poll(struct mca_coll_tupleq_module *module);
/* Frees all that the set-up has made. */
void mca_coll_tupleq_teardown(struct mca_coll_tupleq_module *module);

/* ---- phases.c: the phases of an operation ---- */
/* Advances an operation as far as possible. Returns 1 if it has ended, 0 if it waits, or -errno.
 * Called with the lock held. */
int mca_coll_tupleq_op_poll(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op *op);
/* Returns the process that the operation waits for. */
struct tq_peer *mca_coll_tupleq_op_awaited(const struct mca_coll_tupleq_module *module,
					   const struct mca_coll_tupleq_op *op);

/* ---- progress.c: operations, one after the other on each communicator ---- */
/* Waits for the set-up, and sets *ready if operations of `len` bytes are done by this component.
 * Returns an MPI error. */
int mca_coll_tupleq_await_setup(struct mca_coll_tupleq_module *module, size_t len, bool *ready);
/* Starts an operation, which must stay in memory until it has ended: then `ended` is true, or its
 * request is complete. Called without the lock. */
void mca_coll_tupleq_start(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op *op);
/* Runs a blocking operation. Returns an MPI error. */
int mca_coll_tupleq_run(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_data *data);
/* Advances the nonblocking operations of all communicators. Returns how many have ended. */
int mca_coll_tupleq_progress(void);
/* The delegated operation around a delegated operation: a component may call another collective. */
struct mca_coll_tupleq_delegated {
	bool is_delegated;
	uint64_t number;
};
/* Counts an operation before the next component does it, because all operations of a communicator
 * have one order. Returns an MPI error; then the next component must not be called. */
int mca_coll_tupleq_delegate_begin(struct mca_coll_tupleq_module *module,
				   enum mca_coll_tupleq_kind kind, int root, size_t bytes,
				   struct mca_coll_tupleq_delegated *outer);
/* Ends a delegated operation that returned `rc`. Returns the result of the call. */
int mca_coll_tupleq_delegate_end(struct mca_coll_tupleq_module *module,
				 const struct mca_coll_tupleq_delegated *outer, int rc);

/* ---- mismatch.c: finds processes that wait for one another in different operations ---- */
/* Starts the checks of a module that is READY. Called with the lock held. */
void mca_coll_tupleq_mismatch_add(struct mca_coll_tupleq_module *module);
/* Ends the checks of a module. Called with or without the lock. */
void mca_coll_tupleq_mismatch_remove(struct mca_coll_tupleq_module *module);
/* Ends all checks, when the component closes. */
void mca_coll_tupleq_mismatch_close(void);
/* Records that this process has entered the operation `number`. */
static inline void mca_coll_tupleq_record_call(struct mca_coll_tupleq_module *module,
					       uint64_t number, uint64_t signature)
{
	mca_coll_tupleq_call_write(&module->group.calls[number % TUPLEQ_CALLS], number, signature);
}

/* ---- barrier.c, bcast.c, reduce.c: the calls ---- */
int mca_coll_tupleq_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_tupleq_ibarrier(ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *base);
int mca_coll_tupleq_bcast(void *buf, int count, ompi_datatype_t *type, int root,
			  ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_tupleq_reduce(const void *in, void *out, int count, ompi_datatype_t *type,
			   struct ompi_op_t *op, int root, ompi_communicator_t *comm,
			   mca_coll_base_module_t *base);
int mca_coll_tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
			      struct ompi_op_t *op, ompi_communicator_t *comm,
			      mca_coll_base_module_t *base);

#endif
