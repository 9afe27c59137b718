/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../random.h"
#include "ep/objects.h"
#include "net/lanes/lane.h"
#include "net/peers/oob.h"
#include "proto/common/msg.h"

#define QPNS    (1u << 24)
#define TARGETS 64
#define LATE    8
#define ROOM    256

typedef int post_fn(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
typedef int modify_fn(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/*
 * The kind of lane (plus 1) of each INI QP, as its request said. Shared by the processes of a test.
 */
static uint8_t *kinds;
static post_fn *post_send;
static struct inject_point point;
static _Atomic unsigned seen;
static _Atomic bool armed, reached;
static struct {
	struct ibv_qp *qp;
	uint8_t kind;
} targets[TARGETS];
static unsigned ntargets;

static struct ibv_cq *in_error; /* reported by an event */
static unsigned slow_srqs;      /* how long the destruction of an SRQ takes, in microseconds */

/* The fate of datagrams: how many of 100 are lost, doubled or late. */
static struct {
	bool on;
	unsigned lost, doubled, late;
	uint64_t random;
} fate;
static struct {
	struct ibv_mr *mr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint8_t bytes[ROOM];
} kept[LATE];

static modify_fn *next_modify(void)
{
	static modify_fn *next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_modify_qp");
	return next;
}

static void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	next_modify()(qp, &attr, IBV_QP_STATE);
}

/* ---- the kind of a posted work request ---- */

static bool is_control(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_XRC_SEND && kinds[qp->qp_num] == TQ_LANE_CONTROL + 1;
}

static bool fits(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	const void *bytes = wr->num_sge ? (const void *)(uintptr_t)wr->sg_list[0].addr : NULL;

	switch (point.what) {
	case INJECT_POST:
		return true;
	case INJECT_DATAGRAM:
		return qp->qp_type == IBV_QPT_UD &&
		       ((const struct tq_oob_hdr *)bytes)->type == point.type;
	case INJECT_CONTROL:
		return is_control(qp) && wr->opcode == IBV_WR_SEND &&
		       ((const struct tq_msg_hdr *)bytes)->type == point.type;
	case INJECT_DIRECT:
		return qp->qp_type == IBV_QPT_XRC_SEND && wr->opcode == IBV_WR_SEND &&
		       kinds[qp->qp_num] == point.type + 1;
	case INJECT_READ:
		return wr->opcode == IBV_WR_RDMA_READ;
	case INJECT_WRITE:
		return wr->opcode == IBV_WR_RDMA_WRITE && wr->num_sge;
	}
	return false;
}

static void note_request(const struct ibv_send_wr *wr)
{
	const struct tq_oob_req *req = (const void *)(uintptr_t)wr->sg_list[0].addr;

	if (req->hdr.type == TQ_OOB_REQ)
		kinds[tq_get32(req->ini_qpn)] = req->kind + 1;
}

static void break_target(void)
{
	for (unsigned i = 0; i < ntargets; i++) {
		if (targets[i].kind == point.kind)
			to_error(targets[i].qp);
	}
}

/* ---- datagrams ---- */

static unsigned below(unsigned n)
{
	return (unsigned)(t_random(&fate.random) % n);
}

/* Keeps a datagram, and posts the one that was kept in its place. */
static void keep(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	unsigned i = below(LATE);
	struct ibv_send_wr *bad;

	if (!kept[i].mr)
		kept[i].mr = ibv_reg_mr(qp->pd, kept[i].bytes, ROOM, IBV_ACCESS_LOCAL_WRITE);
	else
		post_send(qp, &kept[i].wr, &bad);
	kept[i].wr = *wr;
	kept[i].sge = wr->sg_list[0];
	memcpy(kept[i].bytes, (const void *)(uintptr_t)kept[i].sge.addr, kept[i].sge.length);
	kept[i].sge.addr = (uintptr_t)kept[i].bytes;
	kept[i].sge.lkey = kept[i].mr->lkey;
	kept[i].wr.sg_list = &kept[i].sge;
	kept[i].wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
}

static int post_datagram(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr copy = *wr;
	unsigned chance = below(100);

	if (chance < fate.lost) {
		copy.wr.ud.remote_qkey ^= 1; /* the receiver drops it */
	} else if (chance < fate.lost + fate.doubled) {
		copy.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
		post_send(qp, &copy, bad);
		copy = *wr;
	} else if (chance < fate.lost + fate.doubled + fate.late) {
		keep(qp, wr);
		copy.wr.ud.remote_qkey ^= 1;
	}
	return post_send(qp, &copy, bad);
}

/* ---- completion queues ---- */

static int poll_fails(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n, (void)wc;
	return -1;
}

static int poll_finds_none(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n, (void)wc;
	return 0;
}

static void break_queues(struct ibv_qp *qp)
{
	bool event = point.how == INJECT_CQ_ERROR;

	qp->context->ops.poll_cq = event ? poll_finds_none : poll_fails;
	if (event)
		in_error = qp->send_cq;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	static int (*next)(struct ibv_context * context, struct ibv_async_event * event);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_get_async_event");
	if (!in_error)
		return next(context, event);
	event->event_type = IBV_EVENT_CQ_ERR;
	event->element.cq = in_error;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	static void (*next)(struct ibv_async_event * event);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_ack_async_event");
	if (event->event_type == IBV_EVENT_CQ_ERR && event->element.cq == in_error)
		in_error = NULL;
	else
		next(event);
}

/* ---- wrappers of the verbs ---- */

static int injecting_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool now;
	int rc;

	if (qp->qp_type == IBV_QPT_UD)
		note_request(wr);
	now = atomic_load(&armed) && fits(qp, wr) && atomic_fetch_add(&seen, 1) + 1 == point.n;
	if (now && point.how == INJECT_KILL_BEFORE)
		kill(getpid(), SIGKILL);
	rc = fate.on && qp->qp_type == IBV_QPT_UD ? post_datagram(qp, wr, bad)
						  : post_send(qp, wr, bad);
	if (!now)
		return rc;
	atomic_store(&reached, true);
	if (point.how == INJECT_KILL_AFTER)
		kill(getpid(), SIGKILL);
	else if (point.how == INJECT_BREAK)
		to_error(qp);
	else if (point.how == INJECT_BREAK_TARGET)
		break_target();
	else
		break_queues(qp);
	return rc;
}

/* Called before and after each message to a ring. Kills the process there if the point says so. */
static void injecting_trace(const char *what, const void *object, const char *from, const char *to)
{
	bool before = !strcmp(to, "SENDING"), after = !strcmp(to, "SENT");

	(void)object, (void)from;
	if ((!before && !after) || !atomic_load(&armed) || point.what != INJECT_CONTROL ||
	    strcmp(what, tq_msg_name((uint8_t)point.type)) ||
	    before != (point.how == INJECT_KILL_BEFORE))
		return;
	if (atomic_fetch_add(&seen, 1) + 1 == point.n)
		kill(getpid(), SIGKILL);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	post_fn **ops = &qp->context->ops.post_send;

	if (*ops != injecting_post) {
		post_send = *ops;
		*ops = injecting_post;
	}
	if (qp->qp_type == IBV_QPT_XRC_RECV && (mask & IBV_QP_DEST_QPN) && ntargets < TARGETS) {
		targets[ntargets].qp = qp;
		targets[ntargets++].kind = (uint8_t)(kinds[attr->dest_qp_num] - 1);
	}
	return next_modify()(qp, attr, mask);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	static int (*next)(struct ibv_srq * srq);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_destroy_srq");
	usleep(slow_srqs);
	return next(srq);
}

/* ---- the interface for tests ---- */

void inject_rings(struct tq_ep *ep)
{
	/* A service thread may be at work. */
	tq_lock(&ep->lock);
	ep->net.trace = injecting_trace;
	tq_unlock(&ep->lock);
}

void inject_slow_srqs(unsigned us)
{
	slow_srqs = us;
}

void inject_init(void)
{
	kinds = mmap(NULL, QPNS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
		     -1, 0);
	if (kinds == MAP_FAILED)
		abort();
}

void inject_set(const struct inject_point *at)
{
	point = *at;
	atomic_store(&armed, true);
}

bool inject_reached(void)
{
	return atomic_load(&reached);
}

void inject_datagrams(unsigned seed, unsigned lost, unsigned doubled, unsigned late)
{
	fate.random = seed;
	fate.lost = lost;
	fate.doubled = doubled;
	fate.late = late;
	fate.on = true;
}
