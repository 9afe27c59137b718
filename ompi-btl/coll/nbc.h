/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives (NBC) of one or two rounds of messages, which may be persistent. An
 * operation is a list of actions: receives, sends, and local work. All receives and all sends that
 * need no received data come first, so the adapter does these alone. The rest of the list is done
 * by progress, in its order.
 *
 * Each communicator has rings of tags. The n-th operation of a ring takes entry n modulo the length
 * of the ring on every rank, so the same tuples (communicator, rank, tag) serve again and get
 * queues. An operation whose entry is still in use waits in the entry's list; progress starts it.
 */
#ifndef TUPLEQ_COLL_NBC_H
#define TUPLEQ_COLL_NBC_H

#include <stdbool.h>
#include <stddef.h>

#include "pml/series.h"

struct mca_coll_tupleq_module;

/*
 * The rings of a communicator. During MPI_Comm_idup Open MPI itself calls MPI_Iallreduce of one
 * MPI_INT, for the maximum or the minimum, at a time that differs between processes, so calls like
 * these have a ring of their own. Two kinds of operations have a ring of a single entry, whose tags
 * don't depend on the number of calls: blocking ones, because only one is under way, and
 * nonblocking ones with a root between two groups, because Open MPI returns from these without
 * asking the component if a process passes a count of 0. Processes that have no part in the
 * operation may do that.
 */
enum mca_coll_tupleq_ring_kind { TUPLEQ_RING, TUPLEQ_RING_IDUP, TUPLEQ_RING_SINGLE, TUPLEQ_RINGS };

/* The longest message (bytes) that counts as short: the default of pml_tupleq_eager_max. An entry
 * has one tag for operations with short messages and one for others, because a tuple whose short
 * messages arrive before their receives gets no queue, which would slow down long messages. */
#define TUPLEQ_SHORT 16384

/* The length of a message of an operation whose messages differ, or aren't known to all ranks. */
#define TUPLEQ_ANY_LENGTH SIZE_MAX

/* Elements in memory; those of a message have a peer. */
struct mca_coll_tupleq_transfer {
	void *addr;
	size_t count;
	ompi_datatype_t *type;
	int peer;
};

enum mca_coll_tupleq_action_kind {
	TUPLEQ_RECEIVE, /* to `to` */
	TUPLEQ_SEND,    /* of `from` */
	TUPLEQ_AWAIT,   /* the end of the receive `awaited` */
	TUPLEQ_COPY,    /* `from` to `to` */
	TUPLEQ_COMBINE  /* `to` = `from` op `to` */
};

struct mca_coll_tupleq_action {
	enum mca_coll_tupleq_action_kind kind;
	int awaited; /* index of an action */
	struct mca_coll_tupleq_transfer from, to;
	ompi_request_t *request; /* of a receive or send that was started */
};

/* A nonblocking collective. */
struct mca_coll_tupleq_nbc {
	struct series_coll_request super;
	ompi_communicator_t *comm;
	ompi_request_t **request; /* where the user wants the request, during the call */
	struct mca_coll_tupleq_action *actions;
	int nactions;
	int next;      /* index of the first action that isn't done */
	int completed; /* actions whose messages are known to be complete */
	int tag;
	struct ompi_op_t *op;                  /* NULL: not a reduction */
	struct mca_coll_tupleq_memory *memory; /* list of what the actions use */
	struct mca_coll_tupleq_nbc **entry; /* of the ring: list of operations; NULL: persistent */
	bool is_handed_over; /* to the user; then it keeps the communicator and the op */
	bool is_plain;       /* no message takes a queue */
	bool two_rounds;     /* some sends need received data */
	bool corrupt; /* an awaited receive has failed: data that are derived from it are no data */
	int rc;       /* the first error */
	struct mca_coll_tupleq_nbc *entry_next, *entry_prev;
	struct mca_coll_tupleq_nbc *active_next, *active_prev;
};
typedef struct mca_coll_tupleq_nbc mca_coll_tupleq_nbc_t;
OBJ_CLASS_DECLARATION(mca_coll_tupleq_nbc_t);

/* A call of a collective. */
struct mca_coll_tupleq_invocation {
	ompi_communicator_t *comm;
	struct mca_coll_tupleq_module *module;
	bool is_persistent, is_blocking;
	ompi_request_t **request;
};

/*
 * Defines collective `name`: its nonblocking form, its persistent form, and the beginning of the
 * function that both call, whose body follows. `params` and `args` are in parentheses.
 */
#define TUPLEQ_COLLECTIVE(name, params, args)                                                     \
	static int name(TUPLEQ_LIST params, const struct mca_coll_tupleq_invocation *invocation); \
	static int i##name(TUPLEQ_LIST params, ompi_communicator_t *comm,                         \
			   ompi_request_t **request, mca_coll_base_module_t *base)                \
	{                                                                                         \
		const struct mca_coll_tupleq_invocation invocation = {                            \
			comm, (struct mca_coll_tupleq_module *)base, false, false, request};      \
                                                                                                  \
		return name(TUPLEQ_LIST args, &invocation);                                       \
	}                                                                                         \
	static int name##_init(TUPLEQ_LIST params, ompi_communicator_t *comm,                     \
			       struct ompi_info_t *info, ompi_request_t **request,                \
			       mca_coll_base_module_t *base)                                      \
	{                                                                                         \
		const struct mca_coll_tupleq_invocation invocation = {                            \
			comm, (struct mca_coll_tupleq_module *)base, true, false, request};       \
                                                                                                  \
		(void)info;                                                                       \
		return name(TUPLEQ_LIST args, &invocation);                                       \
	}                                                                                         \
	static int name(TUPLEQ_LIST params, const struct mca_coll_tupleq_invocation *invocation)
#define TUPLEQ_LIST(...) __VA_ARGS__

/* Defines the blocking form of such a collective, which starts all messages at once. */
#define TUPLEQ_AT_ONCE(name, params, args)                                                   \
	int mca_coll_tupleq_at_once_##name(TUPLEQ_LIST params, ompi_communicator_t *comm,    \
					   mca_coll_base_module_t *base)                     \
	{                                                                                    \
		ompi_request_t *request;                                                     \
		const struct mca_coll_tupleq_invocation invocation = {                       \
			comm, (struct mca_coll_tupleq_module *)base, false, true, &request}; \
		int rc = name(TUPLEQ_LIST args, &invocation);                                \
                                                                                             \
		return rc == OMPI_SUCCESS ? mca_coll_tupleq_nbc_wait(request) : rc;          \
	}

/* Installs the nonblocking and the persistent form in a module. */
#define TUPLEQ_INSTALL(base, name)                        \
	do {                                              \
		(base)->coll_i##name = i##name;           \
		(base)->coll_##name##_init = name##_init; \
	} while (0)

/* Returns an operation without actions, or NULL without memory. The operation has the next entry of
 * the ring, or, if it is persistent, a tag of its own; a blocking one takes TUPLEQ_RING_SINGLE
 * instead. `bytes` is the length of its longest message, or TUPLEQ_ANY_LENGTH. */
struct mca_coll_tupleq_nbc *
mca_coll_tupleq_nbc_new(const struct mca_coll_tupleq_invocation *invocation,
			enum mca_coll_tupleq_ring_kind ring, size_t bytes);

/* Hands the operation to the user, and starts it, now or later, unless it is persistent. If an
 * action couldn't be added, frees the operation and returns the error. */
int mca_coll_tupleq_nbc_start(struct mca_coll_tupleq_nbc *nbc);

/* Waits for a blocking operation, and frees it. Returns the operation's error. */
int mca_coll_tupleq_nbc_wait(ompi_request_t *request);

/* Ends the polling for operations, when the component closes. */
void mca_coll_tupleq_nbc_close(void);

/* A counter, which the component registers as a performance variable of MPI_T. */
struct mca_coll_tupleq_counter {
	const char *name, *help;
	unsigned long long *value;
};
/* The counters; the last one has no name. */
extern const struct mca_coll_tupleq_counter mca_coll_tupleq_nbc_counters[];

/* ---- nbc_actions.c: the list of actions. Errors of adding are recorded in `rc`. ---- */

/* Returns memory that lives as long as the operation, or NULL. */
void *mca_coll_tupleq_nbc_alloc(struct mca_coll_tupleq_nbc *nbc, size_t bytes);

/* Adds a receive. Returns the index of its action. A message without bytes, or with MPI_PROC_NULL,
 * is left out on both sides; then returns -1. */
int mca_coll_tupleq_nbc_receive(struct mca_coll_tupleq_nbc *nbc,
				struct mca_coll_tupleq_transfer message);
/* Adds a send, which is left out like a receive. */
void mca_coll_tupleq_nbc_send(struct mca_coll_tupleq_nbc *nbc,
			      struct mca_coll_tupleq_transfer message);
/* Makes the actions that follow wait for the receive with this index, if it isn't -1. */
void mca_coll_tupleq_nbc_await(struct mca_coll_tupleq_nbc *nbc, int receive);
/* Adds a copy. One of the types may be MPI_BYTE, for packed data. */
void mca_coll_tupleq_nbc_copy(struct mca_coll_tupleq_nbc *nbc, struct mca_coll_tupleq_transfer from,
			      struct mca_coll_tupleq_transfer to);
/* Adds the reduction to = from op to. Both have one count and type. */
void mca_coll_tupleq_nbc_combine(struct mca_coll_tupleq_nbc *nbc,
				 struct mca_coll_tupleq_transfer from,
				 struct mca_coll_tupleq_transfer to);

/* Executes actions up to one that has to wait. */
void mca_coll_tupleq_nbc_run(struct mca_coll_tupleq_nbc *nbc);
/* Polls the requests that the operation waits for. Returns true if the next action can be done, or
 * if there is none and all messages have ended. */
bool mca_coll_tupleq_nbc_poll(struct mca_coll_tupleq_nbc *nbc);
/* Counts the messages that have ended, in their order. Returns true if all actions are done and all
 * messages have ended. */
bool mca_coll_tupleq_nbc_poll_messages(struct mca_coll_tupleq_nbc *nbc);
/* Frees the messages of an operation that has ended, and records their errors. */
void mca_coll_tupleq_nbc_free_messages(struct mca_coll_tupleq_nbc *nbc);
/* Frees the actions and the memory. */
void mca_coll_tupleq_nbc_free_actions(struct mca_coll_tupleq_nbc *nbc);

/* ---- nbc_dense.c, nbc_neighbor.c, nbc_bcast.c, nbc_reduce.c, nbc_scan.c,
 * nbc_blocking.c ---- */

int mca_coll_tupleq_at_once_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				      ompi_datatype_t *stype, void *rbuf, const int *rcounts,
				      const int *rdispls, ompi_datatype_t *rtype,
				      ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_tupleq_at_once_allgather(const void *sbuf, int scount, ompi_datatype_t *stype,
				      void *rbuf, int rcount, ompi_datatype_t *rtype,
				      ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_tupleq_at_once_allgatherv(const void *sbuf, int scount, ompi_datatype_t *stype,
				       void *rbuf, const int *rcounts, const int *displs,
				       ompi_datatype_t *rtype, ompi_communicator_t *comm,
				       mca_coll_base_module_t *base);

/* Installs the calls in a module. */
void mca_coll_tupleq_nbc_dense(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_neighbor(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_bcast(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_reduce(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_reduce_scatter(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_scan(mca_coll_base_module_t *base);
void mca_coll_tupleq_nbc_blocking(mca_coll_base_module_t *base);

#endif
