/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_pair.h - a queue pair as its owner's process sees it: the send queue, the receive queue and
 * the state of the requester. The rooms above work on it; objects/qp.h makes, changes and ends it.
 */
#ifndef SHCA_QUEUE_PAIR_H
#define SHCA_QUEUE_PAIR_H

#include "cq.h"
#include "hca/domains.h"
#include "hca/memory/mw.h"
#include "hca/timers.h"
#include "rq.h"
#include "srq.h"

/* Destination of a datagram, copied from the address handle when the datagram is posted. */
struct shca_ud_dest {
	int hca; /* index of the HCA; -1 = the address leads nowhere */
	bool multicast, global;
	uint8_t sl;
	uint8_t traffic_class, hop_limit, sgid_index;
	uint16_t dlid;
	uint32_t flow_label;
	uint32_t qpn, qkey;
	union ibv_gid dgid;
};

/* The GRH and the data of the largest datagram. */
#define SHCA_DATAGRAM_MAX (40 + 4096)

/* A work request in the send queue. SGEs or inline data follow it. */
struct shca_swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint64_t posted_at; /* link model */
	uint32_t rkey;
	uint32_t srqn;
	uint32_t imm;    /* or the key of a window whose binding ends */
	uint32_t length; /* bytes to send, or to read */
	uint8_t opcode;  /* ibv_wr_opcode */
	uint8_t flags;   /* ibv_send_flags */
	uint16_t num_sge;
	union {
		struct shca_ud_dest ud;
		struct shca_bind bind;
	};
	uint64_t tail[];
};

static inline struct ibv_sge *shca_swqe_sges(struct shca_swqe *wqe)
{
	return (struct ibv_sge *)(void *)wqe->tail;
}
static inline uint8_t *shca_swqe_inline(struct shca_swqe *wqe)
{
	return (uint8_t *)wqe->tail;
}

/* States of a send queue: they say which thread may execute it. A change needs sq_lock, and to or
 * from READY and TIMED the engine's lock too; the engine alone goes from READY or TIMED to RUNNING
 * without sq_lock. */
enum shca_sched {
	SHCA_SCHED_IDLE,    /* no thread has it: a poster may execute at once */
	SHCA_SCHED_READY,   /* on the engine's list */
	SHCA_SCHED_TIMED,   /* on the engine's timer heap */
	SHCA_SCHED_RUNNING, /* a thread is executing it, perhaps without the lock */
};

/* Progress of the message at the head of the send queue. */
struct shca_progress {
	bool held;      /* the target's entry names the claimed receive, in case its QP ends */
	bool started;   /* the responder accepted the message, and its receive is claimed */
	bool unblocked; /* injected delays are over */
	uint8_t faults; /* times that the target's memory was not there */
	uint8_t rnr_tries;
	uint8_t tries;    /* sends that got no answer, or one that asks for another send, since the
			     last other answer */
	int error;        /* errno of the last part that was copied */
	uint8_t silences; /* sends without an answer, with adaptive retransmission */
	/* End of the last timer, at which the send fails; 0: retries are left. */
	uint64_t gives_up_at;
	uint64_t last_timer_end; /* with adaptive retransmission: what it will be */
	uint64_t offset;         /* bytes copied */
	/* Link model. */
	uint64_t arrives_at; /* time at which the last byte arrives; 0 = at once */
	uint64_t first_at;   /* time at which the first byte arrives */
	uint64_t on_link;    /* bytes that the target's port is reserved for */
	bool opened;         /* a SEND: its port is open for it (link.h) */
	bool to_us;          /* true if the data come here: a READ or an atomic */
	/* The RNR NAK after which the message waits. */
	uint64_t rnr_since; /* time at which the NAK came; 0 = the message doesn't wait */
	uint64_t rnr_first; /* time of the first RNR NAK; 0 = there was none */
	struct shca_hca *rnr_from;
	uint32_t rnr_period; /* ns */
	uint32_t rwqe;       /* WQE slot of the claimed receive */
};

struct shca_qp {
	struct ibv_qp_ex ibv; /* the user holds a pointer to ibv.qp_base */
	struct shca_context *ctx;
	struct shca_qp_entry *entry;
	uint32_t idx;
	uint32_t pdn;
	struct shca_cq *send_cq, *recv_cq; /* NULL if the type has none */
	struct shca_srq *srq;
	struct shca_xrcd *xrcd;
	struct shca_rq_local rq;     /* rq.shared is NULL if there is none */
	struct shca_qp *next_handle; /* XRC target: this process's next handle of the same QP */
	struct shca_context_object context_node;
	bool sig_all;
	_Atomic bool flushed; /* in ERR, and all that was posted is completed */
	/* Flushed while a sender may have been in the middle of a message: a receive that it
	 * claimed is lost if the sender dies there. */
	_Atomic bool may_lack;

	char *sq;         /* WQEs */
	bool sq_by_user;  /* allocated by the functions of the parent domain */
	uint32_t sq_size; /* power of two */
	uint32_t sq_stride;
	uint32_t max_wr, max_sge, max_inline;

	/* The fields that posters and the engine hand to each other share one cache line. */
	pthread_mutex_t sq_lock SHCA_ALIGNED;
	uint32_t head; /* sends ever posted */
	uint32_t exec; /* sends ever executed: number of the next one */
	/* The requester's: guarded by sq_lock, or by SHCA_SCHED_RUNNING. */
	_Atomic(enum shca_sched) sched;
	uint32_t rnr_seen; /* shca_runqueue_rnr_wakes() before the last look for a receive */
	bool rnr_wait;     /* true if it is TIMED because of an RNR NAK */

	/* The poster's: `tail`, and the batch that ibv_wr_* is building, with sq_lock held from
	 * wr_start to wr_complete. */
	_Atomic uint32_t tail SHCA_ALIGNED; /* slots below it are free; polling moves it */
	bool may_send;                      /* RTS was reached since RESET */
	uint32_t wr_count;
	int wr_err;
	struct shca_swqe *wr_cur;

	struct shca_qp *ready_prev SHCA_ALIGNED, *ready_next; /* the engine's list */
	struct shca_timer timer;
	struct shca_progress cur;
	struct shca_copy copy; /* runs of the message in progress */
	/* Entries that the last message used: most often the next message uses them, too. */
	struct shca_table_last last_target, last_srq, last_own_region, last_target_region;
	uint8_t *datagram;    /* UD: the GRH and the data of the message in progress */
	_Atomic uint32_t psn; /* of the next send; written like `cur` and by ibv_modify_qp() */
	struct shca_rq_ahead ahead; /* addresses where the next message may find its receive */
	/* Latest visible_at of a send's completion: later completions are seen no earlier. */
	uint64_t last_visible;
	uint64_t link_floor; /* link model: the next message leaves no earlier */
	bool drain_event;    /* SQD asked for an event when drained */
	/* Captures (captured.h): when the last packet was sent, and how many messages have ended:
	 * the MSN of the responder, or the number of the next datagram. */
	uint64_t captured_at;
	uint32_t captured;

	/* Rarely used. */
	struct shca_pd *pd;    /* NULL if the type has no use for one */
	uint32_t events_given; /* event_ack.h */
};

/* Sets the state. Relaxed, because the locks order it. */
static inline void shca_sched_set(struct shca_qp *qp, enum shca_sched to)
{
	atomic_store_explicit(&qp->sched, to, memory_order_relaxed);
}

/* Returns the WQE of send number n. */
static inline struct shca_swqe *shca_swqe(const struct shca_qp *qp, uint32_t n)
{
	return (struct shca_swqe *)(void *)(qp->sq +
					    (uint64_t)(n & (qp->sq_size - 1)) * qp->sq_stride);
}

static inline enum ibv_qp_state shca_qp_state(const struct shca_qp_entry *entry)
{
	return (enum ibv_qp_state)atomic_load_explicit(&entry->state, memory_order_acquire);
}

/* Puts a QP into ERR after an error and sends its owner the event of that type, or none if the type
 * is SHCA_NO_EVENT. The owner's engine flushes the QP. Any process, inside an epoch or for an own
 * QP. */
void shca_qp_fail(struct shca_hca *hca, struct shca_qp_entry *entry, enum ibv_event_type type);

#endif
