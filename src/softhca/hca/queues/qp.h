/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h - queue pairs, the owner's side: the send queue and the requester's state.
 */
#ifndef SHCA_QP_H
#define SHCA_QP_H

#include "cq.h"
#include "fabric/pending_event.h"
#include "hca/execution/engine.h"
#include "hca/memory/mem.h"
#include "hca/objects.h"
#include "rq.h"

/* Where a UD message goes: copied from the AH when it is posted. */
struct shca_ud_dest {
	int hca; /* -1 = nowhere */
	bool multicast, global;
	uint8_t sl;
	uint8_t traffic_class, hop_limit, sgid_index;
	uint32_t flow_label;
	uint32_t qpn, qkey;
	union ibv_gid dgid;
};

/* A work request in the send queue. SGEs or inline data follow it. */
struct shca_swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint64_t posted_at; /* link model */
	uint32_t rkey;
	uint32_t srqn;
	uint32_t imm;
	uint32_t length; /* bytes to send, or to read */
	uint8_t opcode;  /* ibv_wr_opcode */
	uint8_t flags;   /* ibv_send_flags */
	uint16_t num_sge;
	struct shca_ud_dest ud;
	uint64_t tail[];
};

static inline struct ibv_sge *shca_swqe_sges(struct shca_swqe *w)
{
	return (struct ibv_sge *)(void *)w->tail;
}
static inline uint8_t *shca_swqe_inline(struct shca_swqe *w)
{
	return (uint8_t *)w->tail;
}

/* Who may execute a send queue. Changed holding sq_lock, to and from READY and TIMED also the
 * engine's lock; the engine takes a READY or TIMED one to RUNNING under its own lock alone. */
enum shca_sched {
	SHCA_SCHED_IDLE,    /* nobody: a poster may execute at once */
	SHCA_SCHED_READY,   /* on the engine's list */
	SHCA_SCHED_TIMED,   /* on the engine's timer heap */
	SHCA_SCHED_RUNNING, /* a thread is executing it, perhaps without the lock */
};

/* How far the message at the head of the send queue has come. */
struct shca_progress {
	bool held;      /* the target's entry names our receive, in case its QP ends */
	bool started;   /* accepted by the responder: its receive is claimed; or it waits there */
	bool unblocked; /* link model, faults: `not_before` was served */
	uint8_t faults; /* how often the target's memory was not there */
	uint8_t rnr_tries;
	uint8_t tries;
	int error;           /* of the last part that was moved */
	uint64_t offset;     /* bytes moved */
	uint64_t arrives_at; /* link model: when its last byte is at the target; 0 = at once */
	uint64_t first_at;   /* ... when its first one is */
	uint64_t on_link;    /* ... bytes of it that the ports are reserved for */
	bool to_us;          /* ... or at us: a READ or an atomic */
	/* The RNR NAK after which it waits: when it came (0: it doesn't wait), from whom, its
	 * timer. */
	uint64_t rnr_since;
	struct shca_hca *rnr_from;
	uint32_t rnr_period;
	uint32_t rwqe; /* claimed receive */
};

struct shca_qp {
	struct ibv_qp_ex ibv; /* ibv.qp_base is what the user holds */
	struct shca_context *ctx;
	struct shca_qp_entry *entry;
	uint32_t idx;
	uint32_t pdn;
	struct shca_cq *send_cq, *recv_cq; /* NULL where the type has none */
	struct shca_srq *srq;
	struct shca_xrcd *xrcd;
	struct shca_rq_local rq;     /* rq.shared NULL: none */
	struct shca_qp *next_handle; /* XRC target: this process's next handle of the same QP */
	struct shca_context_object context_node;
	bool sig_all;
	_Atomic bool flushed; /* in ERR, and all that was posted is completed */

	char *sq;         /* WQEs */
	uint32_t sq_size; /* power of two */
	uint32_t sq_stride;
	uint32_t max_wr, max_sge, max_inline;

	/* What posting and the engine hand to each other is one cache line. */
	pthread_mutex_t sq_lock SHCA_ALIGNED;
	uint32_t head; /* posted; counters that only grow */
	uint32_t exec; /* next to execute */
	/* The requester (under sq_lock, or by whoever holds SHCA_SCHED_RUNNING). */
	_Atomic(enum shca_sched) sched;
	uint32_t rnr_seen; /* shca_engine_rnr_wakes() before it looked */
	bool rnr_wait;     /* timed because of an RNR NAK */

	/* The poster's own: where its slots come free, and ibv_wr_*: the batch that is being built,
	 * under sq_lock from wr_start to wr_complete. */
	_Atomic uint32_t tail SHCA_ALIGNED; /* slots below it are free: moved by polling */
	uint32_t wr_count;
	int wr_err;
	struct shca_swqe *wr_cur;

	struct shca_qp *ready_prev SHCA_ALIGNED, *ready_next; /* engine's list */
	struct shca_timer timer;
	struct shca_progress cur;
	struct shca_copy copy; /* of the message in progress */
	uint32_t psn;
	struct shca_rq_ahead ahead; /* where the next message may find its receive */
	uint64_t last_visible;
	uint64_t link_floor; /* link model: the queue stood still until then */
	bool drain_event;    /* SQD asked for an event when drained */

	/* Things that are looked at rarely. */
	struct shca_pd *pd;    /* NULL where the type has no use for one */
	uint32_t events_given; /* event_ack.h */
};

/* The locks order it. */
static inline void shca_sched_set(struct shca_qp *qp, enum shca_sched to)
{
	atomic_store_explicit(&qp->sched, to, memory_order_relaxed);
}

static inline struct shca_swqe *shca_swqe(const struct shca_qp *qp, uint32_t n)
{
	return (struct shca_swqe *)(void *)(qp->sq +
					    (uint64_t)(n & (qp->sq_size - 1)) * qp->sq_stride);
}

static inline enum ibv_qp_state shca_qp_state(const struct shca_qp_entry *e)
{
	return (enum ibv_qp_state)atomic_load_explicit(&e->state, memory_order_acquire);
}

/* --- qp.c --- */
/* Puts a QP into ERR after an error and tells its owner, whose engine or next poll flushes it. Any
 * process. */
void shca_qp_fail(struct shca_hca *hca, struct shca_qp_entry *e, enum ibv_event_type type);
/* Completes all that is posted with WR_FLUSH_ERR. The owner, when the state is ERR. Not holding
 * sq_lock. */
void shca_qp_flush(struct shca_qp *qp, uint64_t patience);
/* Does so for each QP of this process that a peer or an error put into ERR. */
void shca_qp_flush_failed(void);

/* --- sq.c --- */
/* A send completion was polled: frees the slots up to it; its wr_id. */
uint64_t shca_sq_complete(struct shca_qp *qp, uint32_t n);
/* The WQE for the next send, or NULL with *err (ENOMEM: full; EINVAL: state). Holding sq_lock. */
struct shca_swqe *shca_sq_next(struct shca_qp *qp, int *err);
/* 0, EINVAL or EOPNOTSUPP: may that opcode be posted to this QP? */
int shca_sq_check_opcode(const struct shca_qp *qp, enum ibv_wr_opcode op);
void shca_sq_set_ud(struct shca_swqe *w, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* Has posted work executed, by this thread if it may be. Holding sq_lock. */
void shca_sq_kick(struct shca_qp *qp);
/* wr_api.c: fills in the function pointers of the extended interface. */
void shca_wr_api_init(struct shca_qp *qp);

/* --- req.c --- */
enum shca_turn {
	SHCA_TURN_EMPTY, /* nothing left */
	SHCA_TURN_MORE,  /* too large for the caller, or a turn is over: queue it */
	SHCA_TURN_WAIT,  /* at *when */
};
/* Who executes; decides what it takes on, and a counter. */
enum shca_runner { SHCA_BY_CALLER, SHCA_BY_ENGINE };
/* Executes a send queue that is RUNNING, and says who does it next. Holding sq_lock. sq.c */
void shca_sq_run(struct shca_qp *qp, enum shca_runner by);
/* Executes from the head of the send queue. Holding sq_lock; drops it while it moves much data, if
 * the engine's. */
enum shca_turn shca_req_run(struct shca_qp *qp, enum shca_runner by, uint64_t *when);
/* When a QP that waits for a receive tries again, if one is posted now: the next end of its timer,
 * or 0, at once. */
uint64_t shca_req_rnr_due(const struct shca_qp *qp);
/* Completes all posted sends with WR_FLUSH_ERR. Holding sq_lock, nobody running. */
void shca_req_flush(struct shca_qp *qp);
/* Ends the WQE at the head with a status; errors fail the QP. */
void shca_req_complete(struct shca_qp *qp, struct shca_swqe *w, enum ibv_wc_status status,
		       uint32_t byte_len);

/* --- ud.c --- */
/* Sends a datagram. SUCCESS whatever becomes of it, or the local error. Link model: if *when is set
 * it is not through, and is to be sent then. Inside an epoch. */
enum ibv_wc_status shca_ud_send(struct shca_qp *qp, struct shca_swqe *w, const struct shca_run *src,
				uint64_t *when);

#endif
