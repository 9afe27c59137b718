/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of the network that the protocol runs on (struct tq_net_ops), with several endpoints in
 * one process. In a real network, control messages arrive, the HCA fills the head of an SRQ, and
 * software polls completions of a QP. In the model each of these is a step that the driver takes.
 * Data really move. A violation (t_fail()) is whatever the contract of proto/common/net_ops.h or
 * the InfiniBand specification forbids.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "proto/common/msg.h"
#include "proto/core.h"
#include "sim.h"

#define MODEL_EPS        4
#define MODEL_LANES      3           /* most hold lanes from an endpoint to a node */
#define MODEL_BULK       MODEL_LANES /* the bulk lane's number */
#define MODEL_QPS        (MODEL_EPS * (MODEL_LANES + 1)) /* of an endpoint: by node and lane */
#define MODEL_SGES       TQ_MAX_PIECES
#define MODEL_FIRST_LKEY 0x100
#define MODEL_ONCE_TAG   (-1000) /* this tag and those below are used once (TQ_SEND_NO_QUEUE) */
/* With conf.hostile: the endpoint whose messages to MODEL_VICTIM may be anything. */
#define MODEL_HOSTILE 1
#define MODEL_VICTIM  0

struct model;

struct model_conf {
	int neps;
	int node[MODEL_EPS];      /* the node of each endpoint */
	int hold_lanes;           /* from an endpoint to a node, 0 to MODEL_LANES */
	uint32_t lane_depth;      /* sends that may be outstanding on a lane */
	uint32_t eager_bufs;      /* eager and DATA messages that an endpoint may have under way */
	uint64_t copy_pool;       /* bytes of an endpoint's pool of copies */
	uint32_t srqs;            /* SRQs that an endpoint may have */
	bool lanes_ready;         /* hold lanes are ready from the beginning */
	uint32_t no_registration; /* bit mask of endpoints that can register no memory */
	bool gives_up; /* one of two endpoints may be given up because memory is missing */
	bool hostile;  /* see MODEL_HOSTILE */
	bool exact;    /* receives are promised to be long enough (TQ_CTX_EXACT_LENGTH) */
	/* The chances, of 256, that a call fails that may fail. */
	uint32_t no_eager_buf, no_copy, no_reg, no_srq_room, no_srq, lane_full, no_data, no_rdma;
	uint32_t lazy; /* the chance, of 256, that a lazy send is reported late */
	/* By sender, a bit mask of receivers: the control messages go through a ring, so that their
	 * buffer can't be kept. */
	uint8_t rings[MODEL_EPS];
	/* By reader, a bit mask of the endpoints whose memory it may read. */
	uint8_t readable[MODEL_EPS];
	uint32_t copy_fails; /* the chance, of 256, that a copy of `readable` memory fails */
};

enum model_kind { MODEL_CONTROL, MODEL_DIRECT, MODEL_READ, MODEL_WRITE };

/* An entry of a send queue. */
struct model_item {
	enum model_kind kind;
	int to;
	/* For control. */
	uint8_t *msg;
	uint32_t len;
	bool eager; /* uses one of eager_bufs */
	/* For direct messages and RDMA. */
	void *token;
	uint32_t srqn;
	struct tq_sg sg[MODEL_SGES];
	int nsg;
	bool lazy;        /* its completion is reported late */
	uint8_t *inlined; /* the data, copied when it was posted */
	uint64_t bytes;
	uint64_t addr;
	uint32_t rkey;
	struct model_item *next, *prev;
};

/* A completion that software hasn't polled yet. */
struct model_done {
	enum model_kind kind;
	bool lazy; /* reported only with a later one of its lane */
	void *token;
	int status;
	uint64_t len;
	struct tq_srq *srq;   /* receives */
	struct tq_lane *lane; /* sends on a hold lane */
	struct model_done *next, *prev;
};

struct model_recv {
	void *token;
	struct tq_sg sg[MODEL_SGES];
	int nsg;
	struct model_recv *next, *prev;
};

enum model_srq_state {
	MODEL_SRQ_FREE, /* the next queue takes it */
	MODEL_SRQ_USED,
	MODEL_SRQ_WITHDRAWN, /* not destroyed yet: its receives may still be filled */
	MODEL_SRQ_DEAD,      /* never used again, because lost messages may still name it */
};

struct tq_srq {
	uint32_t srqn; /* its index in model->srqs + 1 */
	int ep;
	enum model_srq_state state;
	struct model_recv *recvs;
	uint32_t nrecvs;
	uint32_t unpolled; /* completions of it that software hasn't seen */
	uint32_t flying;   /* direct messages to it under way */
};

struct tq_lane {
	int ep, node, idx;
	bool taken;
	uint32_t confirmed; /* bit mask of the processes that hold its TGT QP open */
	uint32_t outstanding;
	uint32_t srqn; /* the SRQ of the outstanding sends */
};

struct tq_bounce {
	int ep;
	uint32_t len;
	uint8_t *msg;
	struct tq_bounce *next, *prev;
};

/* A registration. */
struct model_reg {
	struct tq_reg reg; /* first member: the protocol sees only this */
	uint8_t *addr;
	uint64_t len;
	bool write;   /* or else the HCA may only read there */
	bool reserve; /* made by reserve_get() */
	struct model_reg *next, *prev;
};

/* The messages that an endpoint has sent to another with one envelope. */
struct model_sent {
	int to;
	uint32_t ctx;
	int32_t tag;
	int64_t n;
	struct model_sent *next;
};

struct tq_link {
	struct model_ep *ep;
	int to;
};

struct model_ep {
	struct model *model;
	int id;
	struct tq_core core;
	struct tq_params params;
	struct tq_stats stats;
	struct tq_net_limits limits;
	struct tq_peer peers[MODEL_EPS];
	struct tq_link links[MODEL_EPS];

	struct model_item *control[MODEL_EPS];        /* send queues: by addressee */
	struct model_item *sq[MODEL_QPS];             /* by node and lane */
	struct model_done *scq[MODEL_QPS];            /* completions of sends */
	struct model_done *rcq[MODEL_EPS][MODEL_QPS]; /* of receives: by sender and its QP */
	struct tq_lane lanes[MODEL_EPS][MODEL_LANES]; /* by node */
	struct tq_lane *making[MODEL_EPS]; /* the lane that a process is still to confirm */
	struct model_reg *regs;
	struct tq_bounce *bounces; /* buffers that the protocol keeps */
	uint32_t eager_out, nsrqs, nwithdrawn;
	uint64_t copied; /* bytes of the pool of copies in use */
	bool reserve_used;
	uint8_t *eager; /* between eager_buf() and eager_send() */
	uint32_t eager_len;
	bool data_sure;     /* prepare_data() has promised it */
	bool reminds;       /* tq_core_on_reminded() is to be called */
	bool backpressured; /* the endpoint wants no eager data */
	struct model_sent *sent;
};

struct model {
	struct model_conf conf;
	struct sim_rng *rng;
	bool report_all; /* nothing is lazy any more, because the network is flushed */
	bool calm;       /* nothing fails by chance any more */
	bool down[MODEL_EPS][MODEL_EPS]; /* the connection has failed for good */
	uint32_t next_key;
	struct model_ep ep[MODEL_EPS];
	struct tq_srq **srqs;
	uint32_t nsrqs, srqs_room;
};

extern const struct tq_net_ops model_ops;

/* Starts the endpoints. The caller has set model->conf, and each endpoint's params and limits. */
void model_start(struct model *model, struct sim_rng *rng);
/* Frees the model after the protocol's cores. None of their resources may be left. */
void model_stop(struct model *model);

/* Appends an item to a send queue. */
struct model_item *model_item_add(struct model_item **queue, enum model_kind kind, int to);
void model_item_free(struct model_item *it);

static inline int model_qp(int node, int lane)
{
	return node * (MODEL_LANES + 1) + lane;
}

/* Returns the registration that the protocol named. A wrong one is a violation. */
struct model_reg *model_check_reg(struct model_ep *ep, const struct tq_sg *sg, bool write,
				  const char *what);
struct tq_srq *model_srq(struct model *model, uint32_t srqn);
/* Destroys the SRQs that the endpoint has withdrawn. */
void model_srqs_gone(struct model_ep *ep);

/*
 * Returns true if work between the two endpoints may be wrong: it then ends with an error and
 * breaks the connection.
 */
static inline bool model_astray(const struct model *model, int a, int b)
{
	return model->conf.hostile && a + b == MODEL_HOSTILE + MODEL_VICTIM && a != b;
}

#endif
