/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that the files of the device (verbs.h) share: verbs.c moves data, verbs_objects.c makes
 * the objects. */
#ifndef FUZZ_VERBS_STATE_H
#define FUZZ_VERBS_STATE_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "../expect.h"
#include "verbs.h"

#define MAX_SGE 4

struct recv {
	uint64_t wr_id;
	struct ibv_sge sge[MAX_SGE];
	int n;
	struct recv *next, *prev;
};

struct send {
	uint64_t wr_id;
	bool signaled;
	struct send *next, *prev;
};

struct completion {
	struct ibv_wc wc;
	struct completion *next, *prev;
};

struct cq {
	struct ibv_cq ibv;
	struct completion *done;
	int n;
};

struct srq {
	struct ibv_srq ibv;
	struct ibv_cq *cq;
	uint32_t num;
	struct recv *recvs;
	uint32_t n, max;
	struct srq *next, *prev;
};

struct qp {
	struct ibv_qp ibv;
	struct send *sends;
	struct recv *recvs;
	uint32_t nsends, nrecvs, max_sends, max_recvs;
	struct qp *next, *prev;
};

struct mr {
	struct ibv_mr ibv;
	bool null;
	struct mr *next, *prev;
};

extern struct fake {
	struct verbs_context ctx;
	struct ibv_device dev;
	struct srq *srqs;
	struct qp *qps;
	struct mr *mrs;
	uint32_t next_qpn, next_srqn, next_key;
	int nobjects; /* objects of all kinds */
	bool cut, broken, event;
	uint64_t now, random, yields;
	void (*datagram)(const uint8_t *bytes, uint32_t len);
} fake;

/* In verbs.c. */
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Takes a QP to ERR: the sends in its queue end, the first one with this status. */
void fake_fail(struct qp *qp, enum ibv_wc_status status);

/* In verbs_objects.c: fills in the functions of the device that libibverbs calls through a
 * table. */
void fake_fill_table(struct verbs_context *ctx);

#endif
