/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.h - everything that the processes of one fabric share, byte for byte.
 *
 * A fabric is one sparse file that every process maps: a header, the process table, the context
 * tables of each HCA (what a real adapter keeps in its own memory), and an arena per process for
 * the rings that a real driver keeps in host memory. There are no cross-process locks on the data
 * path: an owner and its requesters meet only in atomics and rings, so a process that is stopped or
 * killed at any instruction holds no other process up. The comment of a field says which process
 * writes it.
 */
#ifndef SHCA_LAYOUT_H
#define SHCA_LAYOUT_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* The library is built with hidden visibility, and exports the functions that libibverbs declares.
 */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include "layout_clock.h"
#include "layout_cm.h"
#include "layout_contexts.h"
#include "options.h"

#define SHCA_MAGIC        0x3161636874666f73ULL /* "softhca1" */
#define SHCA_LINE         64
#define SHCA_ALIGNED      __attribute__((aligned(SHCA_LINE)))
#define SHCA_MAX_PROCS    256
#define SHCA_MAX_HCAS     64
#define SHCA_MAX_EXEC     64 /* threads of one process that execute work at a time */
#define SHCA_MAX_PKEYS    128
#define SHCA_MAX_MCAST    1024
#define SHCA_NO_PROC      0xffffu
#define SHCA_ARENA_LOG2   34
#define SHCA_ARENA        (1ULL << SHCA_ARENA_LOG2) /* addresses of one process's arena; sparse */
#define SHCA_ATOMIC_LOCKS 64
#define SHCA_NAME_LEN     32

/*
 * Fetches a cache line for writing that another CPU read last. __builtin_prefetch() would fetch it
 * for reading only, unless the compiler may use PREFETCHW, which each x86-64 accepts.
 */
static inline void shca_prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Objects that live in an HCA's context tables. */
enum shca_kind {
	SHCA_QP,
	SHCA_SRQ,
	SHCA_CQ,
	SHCA_MR,
	SHCA_XRCD,
	SHCA_MW,
	SHCA_KINDS,
};

/*
 * The state word of a table entry: number (32) | owner's process slot (16) | unused (8) | state
 * (8). A reference is valid while the word still has SHCA_LIVE and the number by which the entry
 * was looked up.
 */
enum shca_entry_state {
	SHCA_FREE,
	SHCA_ALLOCATED, /* taken, not yet visible to lookups */
	SHCA_LIVE,
	SHCA_DYING, /* being destroyed: no new use; freed after a grace period */
};

static inline uint64_t shca_word_make(uint32_t number, unsigned proc, enum shca_entry_state state)
{
	return (uint64_t)number << 32 | (uint64_t)proc << 16 | (uint64_t)state;
}
static inline uint32_t shca_word_number(uint64_t w)
{
	return (uint32_t)(w >> 32);
}
static inline unsigned shca_word_owner(uint64_t w)
{
	return (w >> 16) & 0xffff;
}
static inline enum shca_entry_state shca_word_state(uint64_t w)
{
	return (enum shca_entry_state)(w & 0xff);
}

/* Memory region. Written by its owner before it goes LIVE; read by every requester. */
struct shca_mr_entry {
	_Atomic uint64_t state_word; /* number = lkey = rkey */
	uint64_t iova;               /* first address as the wire names it */
	uint64_t length;             /* bytes */
	uint64_t va;                 /* first address in the owner's memory */
	uint32_t pdn;
	uint32_t access; /* ibv_access_flags */
	uint32_t flags;  /* SHCA_MR_* */
	/* Place in System V shared memory, if SHCA_MR_SEGMENT is set. */
	int32_t shmid;
	uint64_t shm_ns; /* IPC namespace (inode) in which shmid is the segment's number */
	uint64_t shm_at; /* offset of the first byte */
} SHCA_ALIGNED;

#define SHCA_MR_NULL     1u /* writes vanish, reads give zeros */
#define SHCA_MR_IMPLICIT 2u /* implicit ODP: the whole address space */
#define SHCA_MR_SEGMENT  4u /* peers can attach it */
#define SHCA_MR_DEVICE   8u /* device memory */

/*
 * Memory window. Its owner makes and binds it; a peer that sends to the QP that a window of type 2
 * is bound to may end the binding. A process that reads the fields below `binding` looks at that
 * again afterwards: the fields belong to the binding only if it is still the same.
 */
struct shca_mw_entry {
	_Atomic uint64_t state_word; /* number = the middle of its keys: SHCA_MW_KEY */
	uint32_t type;               /* ibv_mw_type */
	uint32_t pdn;
	/* Changes (32) | key by which it may be used (32), or 0: it isn't bound. */
	_Atomic uint64_t binding;
	_Atomic uint64_t iova;   /* first address as the wire names it */
	_Atomic uint64_t length; /* bytes */
	_Atomic uint64_t start;  /* first address as its region names it */
	_Atomic uint32_t region; /* key */
	_Atomic uint32_t access; /* ibv_access_flags */
	_Atomic uint32_t qpn;    /* type 2: the only QP that may be used; type 1: 0 */
} SHCA_ALIGNED;

/* The keys of windows have the top bit, and those of regions don't. The user of a window of type 2
 * chooses the last 8 bits, and those of type 1 change with each binding. */
#define SHCA_MW_KEY(number, tag) (0x80000000u | (number) << 8 | ((tag)&0xff))
#define SHCA_MW_NUMBER(key)      ((key) >> 8 & 0x7fffff)
#define SHCA_IS_MW_KEY(key)      ((key) >> 31)

/*
 * Completion queue: the entry, and in the owner's arena a ring whose first line is shca_cq_ring.
 * Producers are any executors; the consumer is the owner under its private lock.
 */
struct shca_cq_entry {
	_Atomic uint64_t state_word;
	_Atomic uint64_t ring;     /* arena offset << 8 | log2(slots); swapped by a resize */
	_Atomic uint32_t limit;    /* capacity: one completion more is an overrun */
	uint32_t stride;           /* bytes of one slot */
	_Atomic uint32_t overrun;  /* 1: overrun, no further completion is taken */
	uint32_t channel;          /* comp channel + 1, 0 = none */
	uint32_t async_channel;    /* the context's async event channel */
	uint32_t stamps;           /* 1: completions carry a time stamp */
	uint64_t bounces;          /* arena offset (cq_bounce.h) */
	_Atomic uint32_t nbounces; /* power of two; 0 = none (yet) */
	uint32_t room;             /* largest message (bytes) that a completion can carry */
	_Atomic uint64_t polled_cache SHCA_ALIGNED; /* `polled` as a producer last saw it */
	_Atomic uint64_t polled SHCA_ALIGNED; /* positions handed to the user or voided; consumer */
	_Atomic uint64_t arm SHCA_ALIGNED;    /* SHCA_ARM_* | slot of the producer << 8 */
	_Atomic uint64_t events;              /* completion events raised */
	_Atomic uint32_t moderation;          /* completions << 16 | us (cq_event.h); 0 = none */
	_Atomic uint32_t seen, seen_at_event; /* completions: now, and at the last event */
	_Atomic uint64_t event_at;            /* time of the last event */
} SHCA_ALIGNED;

enum shca_arm {
	SHCA_ARM_NONE,
	SHCA_ARM_SOLICITED,
	SHCA_ARM_ANY,
	SHCA_ARM_FIRING, /* a producer writes the event; if it died, the reaper does so again */
	SHCA_ARM_HELD,   /* moderation holds the event back; if it died, the reaper writes it */
};

struct shca_cq_ring {
	_Atomic uint64_t tail SHCA_ALIGNED; /* first position that may be free; producers */
	/* Where positions of this ring start: tail - bias - polled (of the entry) is the number of
	 * completions in the queue. The owner writes this in a resize. */
	_Atomic uint64_t bias;
	/* Number of slots that have memory, from slot 0 on. The slot after the next position
	 * always has some, so that no process looks at a slot without. Producers write this. */
	_Atomic uint64_t backed;
};

/*
 * A completion in a ring. The word says who may use the slot: position << 24 | process tag << 8 |
 * state. FREE(p): a producer may claim position p. CLAIMED(p): its process is writing it. VALID(p):
 * poll it. VOID(p): the consumer removed it (its QP was destroyed).
 */
enum shca_slot_state {
	SHCA_SLOT_FREE,
	SHCA_SLOT_CLAIMED,
	SHCA_SLOT_VALID,
	SHCA_SLOT_VOID,
};

#define SHCA_SLOT_WORD(pos, tag, state) ((uint64_t)(pos) << 24 | (uint64_t)(tag) << 8 | (state))
#define SHCA_WORD_IS_AT(w, pos)         ((w) >> 24 == ((pos) & ((1ULL << 40) - 1)))
#define SHCA_WORD_TAG(w)                ((unsigned)((w) >> 8) & 0xffff)
#define SHCA_WORD_STATE(w)              ((w)&0xff)

struct shca_cqe {
	_Atomic uint64_t word;
	uint64_t visible_at; /* time (shca_now()) from which a poll may return it; 0 = at once */
	uint32_t rsc; /* table index of the QP (send; receive from its own RQ) or of the SRQ */
	uint32_t wqe; /* send: posting counter; receive: WQE slot */
	uint32_t byte_len;
	uint32_t imm; /* as on the wire */
	uint32_t qp_num;
	uint32_t src_qp;
	uint16_t slid;
	uint16_t payload; /* bytes of the message that travel with the completion */
	uint8_t opcode;   /* ibv_wc_opcode */
	uint8_t status;   /* ibv_wc_status */
	uint8_t wc_flags;
	uint8_t flags; /* SHCA_CQE_* */
	uint32_t srqn; /* number of the SRQ that rsc names: the index may be another SRQ's by now */
	uint16_t bounce; /* bounce buffer of the payload (cq_bounce.h), from 1; 0 = it is in data */
	uint8_t data[10];
};
#define SHCA_CQE_SRQ       1u /* rsc is an SRQ */
#define SHCA_CQE_RECV      2u
#define SHCA_CQE_SOLICITED 4u
#define SHCA_CQE_SL(flags) ((flags) >> 4)
static_assert(sizeof(struct shca_cqe) == 64,
	      "a completion with 10 bytes of data is one cache line");

/*
 * A receive queue, of a QP or an SRQ. `ring` (arena offset) holds words in posting order. The WQEs
 * are apart from them, because an SRQ's come free out of order. The owner posts at tail; any
 * requester claims at head. A WQE is the owner's again when its completion was polled.
 */
struct shca_rq {
	uint64_t ring; /* arena offset of _Atomic uint64_t[size]: (position + 1) << 32 | WQE slot */
	uint64_t wqes; /* arena offset of the WQEs, behind the ring; posted WQEs have memory */
	uint32_t size; /* power of two */
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t stride;                    /* bytes of one WQE */
	_Atomic uint64_t head SHCA_ALIGNED; /* receives ever claimed; requesters */
	/* Receives that requesters gave back, to be claimed first: a stack of WQE slots. Changes
	 * (32) | slot of the top + 1 (32), or 0. */
	_Atomic uint64_t returned;
	_Atomic uint32_t limit; /* SRQ limit, 0 = not armed; one-shot */
	/* Processes that found the queue empty and are to be woken when a receive is posted. */
	_Atomic uint64_t rnr_waiters[SHCA_MAX_PROCS / 64];
	_Atomic uint64_t tail SHCA_ALIGNED; /* receives ever posted; owner */
	_Atomic bool rnr_waiting;           /* true if there may be waiters */
};

struct shca_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	_Atomic uint32_t next_returned; /* slot + 1 */
	struct ibv_sge sge[];
};

/* Shared receive queue. */
struct shca_srq_entry {
	_Atomic uint64_t state_word; /* number = SRQN */
	uint32_t pdn;
	uint32_t type; /* ibv_srq_type */
	uint32_t xrcd; /* table index, XRC only */
	uint32_t cq;   /* table index, XRC only */
	uint32_t async_channel;
	_Atomic uint32_t error;
	struct shca_rq rq;
} SHCA_ALIGNED;

/* Numbers of the counters; those below SHCA_C_PER_QP are kept in QPs. */
enum shca_counter {
#define QP_COUNTER(id, name, help)  SHCA_C_##id,
#define HCA_COUNTER(id, name, help) SHCA_C_##id,
#include "counters.def"
#undef QP_COUNTER
#undef HCA_COUNTER
	SHCA_C_COUNT,
	SHCA_C_PER_QP = 0
#define QP_COUNTER(id, name, help) +1
#define HCA_COUNTER(id, name, help)
#include "counters.def"
#undef QP_COUNTER
#undef HCA_COUNTER
};

/*
 * Queue pair: what its peers must see. The send queue is private to the owner, whose process
 * executes it. The owner writes attributes (of an XRC target QP: any process that has it open,
 * under tgt_lock) before it stores the state in which they matter; peers read the state with
 * acquire.
 */
struct shca_qp_entry {
	/* number = QPN; owner SHCA_NO_PROC: an XRC target QP that outlived its creator */
	_Atomic uint64_t state_word;
	_Atomic uint32_t state; /* ibv_qp_state */
	uint32_t type;          /* ibv_qp_type */
	uint32_t pdn;
	uint32_t send_cq; /* table index */
	uint32_t recv_cq; /* table index */
	uint32_t srq;     /* table index + 1, 0 = none */
	uint32_t xrcd;    /* table index, XRC_RECV */
	uint32_t async_channel;
	uint32_t dest_qpn;
	uint32_t dest_hca; /* index, from the address vector */
	uint32_t qkey;
	uint32_t access;          /* ibv_access_flags */
	uint16_t pkey;            /* value, from the index */
	_Atomic uint8_t comm_est; /* 1: the event was sent; requesters */
	uint8_t pad0;

	/* Responder side; written by the one requester that is connected here (IBA 9.7). */
	_Atomic uint32_t epsn SHCA_ALIGNED; /* PSN expected next */
	_Atomic uint32_t inflight_rsc; /* table index + 1 of the QP or SRQ whose receive a message
					  holds; 0 = none */
	_Atomic uint32_t inflight_wqe;
	_Atomic uint32_t inflight_srq; /* SRQN of that receive; 0 = the QP's own receive queue */
	_Atomic uint64_t last_visible; /* keeps completions of one QP in order */
	_Atomic uint64_t rx_packets;
	_Atomic uint64_t rx_bytes;

	_Atomic uint64_t counters[SHCA_C_PER_QP] SHCA_ALIGNED; /* written by the executor of the
								  send queue */

	struct ibv_qp_attr attr SHCA_ALIGNED; /* as set, for queries */
	struct ibv_qp_cap cap;
	uint32_t sq_sig_all;
	uint32_t create_flags;
	struct shca_rq rq SHCA_ALIGNED;

	/* XRC target QPs: the processes that have it open. */
	_Atomic uint64_t openers[SHCA_MAX_PROCS / 64];
	pthread_mutex_t tgt_lock; /* robust; attributes and transitions of a target QP */
} SHCA_ALIGNED;

/* XRC domain. Written under the HCA's control lock. */
struct shca_xrcd_entry {
	_Atomic uint64_t state_word;
	uint64_t dev; /* file that names the domain; 0,0 = private */
	uint64_t ino;
	_Atomic uint64_t openers[SHCA_MAX_PROCS / 64];
} SHCA_ALIGNED;

/* A multicast membership. Written under the fabric's control lock; read by UD senders. */
struct shca_mcast {
	_Atomic uint32_t qpn; /* 0 = free */
	_Atomic uint32_t hca;
	union ibv_gid gid;
};

struct shca_table {
	uint64_t offset;        /* of the entries, from the start of the file */
	uint32_t entry_size;    /* bytes */
	uint32_t size;          /* entries that have addresses */
	_Atomic uint32_t hint;  /* index at which the next search for a free entry begins */
	_Atomic uint32_t high;  /* entries below it are backed by memory */
	_Atomic uint32_t count; /* entries that are taken, or more (table.c) */
	uint32_t limit;         /* of count, from the options */
};

/* The times at which a port receives, in slots that are used again and again. A slot's word holds
 * the lap through the calendar and the part of the slot that is taken. */
#define SHCA_CALENDAR_LOG2  10 /* ns of a slot */
#define SHCA_CALENDAR_SLOTS 16384

struct shca_calendar {
	_Atomic uint64_t slots[SHCA_CALENDAR_SLOTS];
};

/* One virtual HCA: device d of node n. */
struct shca_hca {
	uint64_t guid;
	uint16_t lid; /* Ethernet: 0 */
	uint16_t node;
	uint16_t device;
	uint16_t npkeys;
	uint16_t pkeys[SHCA_MAX_PKEYS];
	char name[SHCA_NAME_LEN]; /* softhca0 ... */
	struct shca_table tables[SHCA_KINDS];
	_Atomic uint32_t next_pdn;
	_Atomic uint32_t pds;
	_Atomic uint64_t dm_used; /* bytes of device memory that processes have */
	pthread_mutex_t ctl_lock; /* robust: XRC domains */
	/* Link model: the time (ns) until which the port sends, until when it isn't known what the
	 * port sends then, and the times at which it receives (link.c). */
	_Atomic uint64_t egress_free SHCA_ALIGNED;
	_Atomic uint64_t egress_open;
	uint64_t ingress;  /* offset of a struct shca_calendar */
	uint64_t contexts; /* offset of the sets of contexts, or 0 */
	/* Process slot + 1 of the process that does an atomic on memory with that hash. */
	_Atomic uint32_t atomic_locks[SHCA_ATOMIC_LOCKS] SHCA_ALIGNED;
	/* Sums of QPs that are gone, and counts that no QP keeps. See counters.h. */
	_Atomic uint64_t counters[SHCA_C_COUNT] SHCA_ALIGNED;
	_Atomic uint64_t counters_base[SHCA_C_COUNT]; /* at the last reset */
} SHCA_ALIGNED;

/*
 * An executor: a thread that is executing work. `seq` is odd while the thread may hold pointers
 * into objects of other processes; a destroyer waits until each executor has been even once
 * (epoch.h). The `copy` fields ask another process to copy, if the kernel forbids process_vm_readv
 * (hca/memory/peer_copy.h).
 */
enum shca_copy_state {
	SHCA_COPY_IDLE,
	SHCA_COPY_ASKED,
	SHCA_COPY_TAKEN,
	SHCA_COPY_DONE,
	SHCA_COPY_FAILED,
};

#define SHCA_HOLDS_ANY 0xffffffffu

struct shca_exec {
	_Atomic uint64_t seq SHCA_ALIGNED;
	_Atomic uint32_t holds; /* inside an epoch: the process slot whose objects it may hold
				   besides those of its own process, or SHCA_HOLDS_ANY */
	_Atomic uint32_t tid;   /* 0 = free */
	_Atomic uint32_t copy; /* tag of the asked process (hca/process.h) << 8 | shca_copy_state */
	uint32_t copy_write;   /* 1: into the target's memory */
	uint64_t copy_addr;
	uint64_t copy_len;
	uint64_t copy_bounce; /* offset in the asker's arena */
	/* An event that the thread is about to cause, or 0, and the object (pending_event.h). */
	_Atomic uint32_t pending_event;
	uint32_t pending_event_hca;
	uint32_t pending_event_number;
};

/* Some QP of this process was put into ERR, or a process died that may have been sending to it. */
#define SHCA_ATTENTION_QP  1u
#define SHCA_ATTENTION_RNR 2u /* a receive was posted where a send of this process waits */
#define SHCA_ATTENTION_MR \
	4u /* a region in a segment is gone, which this process may have attached */

enum shca_proc_state {
	SHCA_PROC_FREE,
	SHCA_PROC_ALIVE,
	SHCA_PROC_REAPING,
};

static inline bool shca_proc_state_alive(uint64_t state)
{
	return (state & 0xff) == SHCA_PROC_ALIVE;
}

struct shca_proc {
	_Atomic uint64_t state; /* generation << 8 | shca_proc_state */
	_Atomic int32_t pid;
	uint32_t node;
	uint64_t start_time; /* field 22 of /proc/PID/stat: tells successive processes with one pid
				apart */
	uint64_t image;      /* identity of its program (see proc.c); 0 = not known */
	char comm[16];
	_Atomic uint32_t pds[SHCA_MAX_HCAS];
	_Atomic uint64_t dm_used[SHCA_MAX_HCAS]; /* bytes of device memory */
	_Atomic uint64_t arena_used;             /* bytes */
	_Atomic uint64_t pinned; /* bytes of registered memory, against the memlock limit */
	_Atomic uint32_t owes;   /* 1: it may have to raise events for completions */
	/* When the first deadline of its connections' messages is, 0 = none. Stored under the lock
	 * of shca_cm; any process. */
	_Atomic uint64_t cm_due;
	_Atomic uint32_t wake_word SHCA_ALIGNED; /* futex on which its engine sleeps */
	_Atomic uint32_t sleeping;               /* 1: the engine is in (or going to) futex_wait */
	_Atomic uint32_t attention;              /* SHCA_ATTENTION_*, set by peers */
	/* Channel + 1 for asynchronous events of XRC target QPs that it has open. */
	_Atomic uint32_t tgt_channel[SHCA_MAX_HCAS];
	/* Processes that have asked this one to copy. */
	_Atomic uint64_t copy_asked[SHCA_MAX_PROCS / 64];
	/* Processes that have attached a segment with a region of this process; they set their
	 * bit. */
	_Atomic uint64_t attached[SHCA_MAX_PROCS / 64];
	pthread_mutex_t alive_lock
		SHCA_ALIGNED; /* robust; its engine holds it as long as the engine runs */
	struct shca_exec exec[SHCA_MAX_EXEC];
} SHCA_ALIGNED;

struct shca_fabric_header {
	uint64_t magic;
	uint64_t size;             /* of this header and all tables; the arenas follow */
	uint64_t arenas;           /* offset of arena 0 */
	uint64_t seed;             /* scatters numbers */
	_Atomic int32_t owner_pid; /* the launcher */
	uint32_t nhcas;
	uint32_t nodes;
	uint32_t devices;
	uint64_t created;      /* CLOCK_REALTIME ns */
	uint64_t created_mono; /* CLOCK_MONOTONIC ns, at the same time */
	char dir[108];         /* the fabric's directory */
	char command[128];
	_Atomic uint32_t ready;
	pthread_mutex_t ctl_lock; /* robust: process slots, multicast */
	struct shca_config config;
	struct shca_clock clock;
	struct shca_cm cm;
	struct shca_proc procs[SHCA_MAX_PROCS];
	struct shca_mcast mcast[SHCA_MAX_MCAST];
	struct shca_hca hcas[SHCA_MAX_HCAS];
} SHCA_ALIGNED;

#endif
