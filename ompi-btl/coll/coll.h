/* SPDX-License-Identifier: BSD-3-Clause */
/* The component's state, and what its files share. */
#ifndef TUPLEQ_COLL_H
#define TUPLEQ_COLL_H

#include "pml/series.h"

#include <tupleq/tupleq.h>

#include "exchange.h"
#include "marks.h"
#include "round.h"
#include "schedule.h"
#include "segment.h"
#include "stamp.h"

#define TUPLEQ_MAJOR   0
#define TUPLEQ_MINOR   1
#define TUPLEQ_RELEASE 0

/* The number of no operation; those of a communicator count on from here. As with the kernel's
 * jiffies, they wrap soon, so that a fault in that would be seen by every program. */
#define TUPLEQ_FIRST (UINT64_MAX - 100)

/* The longest data (bytes) that the user may ask for. */
#define TUPLEQ_LIMIT_MAX 4096

/* Entries of a ring (round.h) that the user may ask for. */
#define TUPLEQ_RING_MAX SERIES_RING_TAGS

/* Steps between nodes. */
struct mca_coll_tupleq_path {
	struct mca_coll_tupleq_step steps[TUPLEQ_STEPS];
	int nsteps;
};

/* What an operation moves. */
struct mca_coll_tupleq_data {
	enum mca_coll_tupleq_kind kind;
	int root;       /* rank */
	const void *in; /* NULL: this process brings nothing */
	void *out;      /* NULL: and gets nothing */
	size_t len;
	size_t bytes; /* as MPI counts: without gaps */
	/* To be reduced: */
	int count;
	ompi_datatype_t *type;
	struct ompi_op_t *op;
	ompi_communicator_t *comm;
	/* The leader's, of a tree: */
	struct mca_coll_tupleq_path path;
};

/* An operation that is under way. */
struct mca_coll_tupleq_op {
	uint64_t number;
	struct mca_coll_tupleq_data *data; /* NULL: a barrier */
	int place;                         /* of the data, and of the stamps */
	uint32_t stamp;                    /* what is sent on: the root's where lengths differ */
	size_t len;                        /* bytes that are sent on */
	bool differs;                      /* in its length, from another process's */
	enum {
		TUPLEQ_ENTER, /* leader: waits for the processes of its node; others: say that they
				 are here */
		TUPLEQ_NETWORK, /* leader: the steps between nodes */
		TUPLEQ_LEAVE    /* others: wait for the leader's word */
	} phase;
	int at;     /* the process or step that is waited for */
	bool wrote; /* the step's write is done */
	size_t got; /* words of the step's message that are there */
	int rc;
	_Atomic bool ended;
	struct mca_coll_tupleq_request *request; /* NULL: blocking, on the stack of its caller */
	struct mca_coll_tupleq_op *next, *prev;
};

struct mca_coll_tupleq_request {
	ompi_request_t super;
	struct mca_coll_tupleq_op op;
	struct mca_coll_tupleq_exchange exchange; /* where there is no memory to write to */
	int tag;                                  /* for it */
	ompi_communicator_t *comm;
};

/* A node of a communicator, as its leader. */
struct mca_coll_tupleq_node {
	struct tq_peer *leader;
	uint64_t addr; /* of its segment there */
	uint32_t key;
	struct mca_coll_tupleq_mark mark; /* there, for failures */
};

/* Where a rank is. */
struct mca_coll_tupleq_where {
	int node;
	int local; /* number on its node */
};

/* What a communicator has once it is set up. */
struct mca_coll_tupleq_group {
	int me;                 /* number of this process on its node; 0 is the leader */
	struct tq_peer **local; /* the node's processes */
	struct mca_coll_tupleq_shape shape;
	struct mca_coll_tupleq_segment *segment;
	struct mca_coll_tupleq_call *calls; /* this process's, in it */
	int nnodes;
	struct tq_ep *ep;
	/* The leader's: */
	struct tq_mr *mr;
	struct mca_coll_tupleq_mark mark; /* where other leaders tell of failures */
	struct mca_coll_tupleq_node *nodes;
	int node; /* which this is */
	struct mca_coll_tupleq_where *where;
	struct mca_coll_tupleq_path barrier, reduction;
	/* What is reduced so far, and what comes; to be sent. */
	void *sum, *other;
	uint64_t *words;
};

/* What the component with the next lower priority would do. */
#define TUPLEQ_NEXT(name)                              \
	struct {                                       \
		mca_coll_base_module_##name##_fn_t fn; \
		mca_coll_base_module_t *module;        \
	} name

enum mca_coll_tupleq_state {
	TUPLEQ_NEW,     /* its first operation sets it up */
	TUPLEQ_SETTING, /* operations wait for that */
	TUPLEQ_READY,
	TUPLEQ_DECLINED /* some process can't */
};

/* An operation at the last look. */
struct mca_coll_tupleq_watched {
	bool is_in; /* there was one */
	uint64_t number;
};

struct mca_coll_tupleq_module {
	mca_coll_base_module_t super;
	ompi_communicator_t *comm;
	struct {
		TUPLEQ_NEXT(barrier);
		TUPLEQ_NEXT(allreduce);
		TUPLEQ_NEXT(bcast);
		TUPLEQ_NEXT(reduce);
	} next;
	_Atomic int state; /* enum mca_coll_tupleq_state; written with component.lock */
	struct mca_coll_tupleq_group group;
	/* From here on guarded by component.lock. */
	struct mca_coll_tupleq_setup *setup; /* under way */
	uint64_t number;                     /* of the last operation that was started */
	int turn;   /* place of the next operation that keeps nobody together */
	bool odd;   /* the last that did keep them together had the second place */
	int failed; /* 0; -EIO: a process is gone; -EPROTO: processes are in
		       different operations */
	struct mca_coll_tupleq_op *ops; /* under way; only the first moves */
	int nonblocking;                /* of these; if there are any, it is in component.active */
	struct mca_coll_tupleq_module *active_next, *active_prev;
	/* watch.c: */
	bool elsewhere; /* in an operation that the next component does, */
	uint64_t elsewhere_number;
	struct mca_coll_tupleq_watched watched_op, watched_elsewhere;
	struct mca_coll_tupleq_module *ready_next, *ready_prev, *failed_next;
	/* round.c; guarded by its lock: */
	uint64_t nrounds;                                    /* operations so far */
	struct mca_coll_tupleq_round *ring[TUPLEQ_RING_MAX]; /* lists: only the first is started */
};
OBJ_CLASS_DECLARATION(mca_coll_tupleq_module_t);
typedef struct mca_coll_tupleq_module mca_coll_tupleq_module_t;

struct mca_coll_tupleq {
	int priority;
	int pattern; /* enum mca_coll_tupleq_pattern */
	int limit;   /* bytes of data */
	int ring;    /* entries of a ring; 0: the next component does what round.h is for */
	opal_mutex_t lock;
	struct mca_coll_tupleq_module *active; /* list: communicators with nonblocking operations */
	_Atomic int nonblocking; /* operations of these, in all; read without the lock, too */
	bool progressing;        /* mca_coll_tupleq_progress() is registered */
	struct mca_coll_tupleq_module *ready; /* list: communicators in the state READY */
	bool watching;                        /* mca_coll_tupleq_watch() is registered */
	unsigned polls;
};

extern struct mca_coll_tupleq mca_coll_tupleq;
extern series_coll_component_t mca_coll_tupleq_component;

static inline void mca_coll_tupleq_set_state(struct mca_coll_tupleq_module *c,
					     enum mca_coll_tupleq_state state)
{
	/* release: what has been set up is there for who sees it. */
	atomic_store_explicit(&c->state, state, memory_order_release);
}

static inline enum mca_coll_tupleq_state mca_coll_tupleq_state(struct mca_coll_tupleq_module *c)
{
	return (enum mca_coll_tupleq_state)atomic_load_explicit(&c->state, memory_order_acquire);
}

/* For who asks why (coll_base_verbose of 10). */
void mca_coll_tupleq_say(ompi_communicator_t *comm, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- setup.c ---- */
/* Begins to bring a new communicator to READY or DECLINED, the same on all processes. 0, -ENOMEM.
 */
int mca_coll_tupleq_setup_start(struct mca_coll_tupleq_module *c);
/* 1: it is; 0: not yet; -errno: it will be neither. */
int mca_coll_tupleq_setup_poll(struct mca_coll_tupleq_module *c);
void mca_coll_tupleq_teardown(struct mca_coll_tupleq_module *c);

/* ---- meet.c: the way of an operation ---- */
/* 1: it has ended; 0: not yet; -errno. Called with the lock. */
int mca_coll_tupleq_meet(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op *op);
/* The process whose word is waited for. */
struct tq_peer *mca_coll_tupleq_awaits(const struct mca_coll_tupleq_module *c,
				       const struct mca_coll_tupleq_op *op);

/* ---- progress.c: operations, one after the other on each communicator ---- */
/* Ends what is under way, and all that comes, with `why`: -EIO, -EPROTO. Called with the lock. */
void mca_coll_tupleq_fail(struct mca_coll_tupleq_module *c, int why);
/* Fails if another process has told so; returns whether it has failed. Called with the lock, in the
 * state READY. */
bool mca_coll_tupleq_was_told(struct mca_coll_tupleq_module *c);
/* MPI's error class for a negative errno (or 0). */
int mca_coll_tupleq_error(int rc);
/* Is an operation with `len` bytes done here? Waits for the set-up. 0, or MPI's error. */
int mca_coll_tupleq_ready(struct mca_coll_tupleq_module *c, size_t len, bool *ready);
void mca_coll_tupleq_start(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op *op);
/* Starts a blocking operation and waits for it. 0, or MPI's error. */
int mca_coll_tupleq_run(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_data *data);
int mca_coll_tupleq_progress(void);
/* Around an operation that the next component does: counts it, as all of a communicator's have one
 * order. 0, or MPI's error; then it isn't to be called. */
struct mca_coll_tupleq_elsewhere {
	bool elsewhere; /* the operation around this one */
	uint64_t number;
};
int mca_coll_tupleq_elsewhere_begin(struct mca_coll_tupleq_module *c,
				    enum mca_coll_tupleq_kind kind, int root, size_t bytes,
				    struct mca_coll_tupleq_elsewhere *outer);
/* Returns the result of the call whose operation returned `rc`. */
int mca_coll_tupleq_elsewhere_end(struct mca_coll_tupleq_module *c,
				  const struct mca_coll_tupleq_elsewhere *outer, int rc);

/* ---- watch.c: whether processes that wait for one another are in the same operation. Called with
 * the lock ---- */
void mca_coll_tupleq_watch_add(struct mca_coll_tupleq_module *c);
void mca_coll_tupleq_watch_remove(struct mca_coll_tupleq_module *c);
void mca_coll_tupleq_watch_stop(void);
/* This process is in its operation of that number. */
static inline void mca_coll_tupleq_watch_record(struct mca_coll_tupleq_module *c, uint64_t number,
						uint64_t what)
{
	mca_coll_tupleq_call_write(&c->group.calls[number % TUPLEQ_CALLS], number, what);
}
/* Says once that the operation of that number is another one elsewhere. */
void mca_coll_tupleq_watch_say(struct mca_coll_tupleq_module *c, uint64_t number);

/* ---- barrier.c, bcast.c, reduce.c: the calls ---- */
int mca_coll_tupleq_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_tupleq_ibarrier(ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module);
int mca_coll_tupleq_bcast(void *buf, int count, ompi_datatype_t *type, int root,
			  ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_tupleq_reduce(const void *in, void *out, int count, ompi_datatype_t *type,
			   struct ompi_op_t *op, int root, ompi_communicator_t *comm,
			   mca_coll_base_module_t *module);
int mca_coll_tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
			      struct ompi_op_t *op, ompi_communicator_t *comm,
			      mca_coll_base_module_t *module);

#endif
