/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_modify.c - the state machine of queue pairs (IBA 10.3.1), and which attributes each transition
 * takes (tables 91 to 97, as the kernel's ib_modify_qp_is_ok() applies them).
 */
#include <errno.h>
#include <string.h>

#include "clock/clock.h"
#include "fabric/address.h"
#include "fabric/event.h"
#include "hca/execution/flush.h"
#include "hca/execution/runqueue.h"
#include "hca/execution/post.h"
#include "hca/execution/req.h"
#include "hca/object_cache.h"
#include "hca/sizes.h"
#include "qp.h"

#define S(state) IBV_QPS_##state
#define Q(name)  IBV_QP_##name

enum type_idx { RC, UC, UD, INI, TGT, TYPES };

/* The attributes that a QP takes in INIT, and those that one may change on its way to RTS and
 * there, by type. */
#define INIT_ATTRS                                                 \
	{                                                          \
		[RC] = Q(PKEY_INDEX) | Q(PORT) | Q(ACCESS_FLAGS),  \
		[UC] = Q(PKEY_INDEX) | Q(PORT) | Q(ACCESS_FLAGS),  \
		[UD] = Q(PKEY_INDEX) | Q(PORT) | Q(QKEY),          \
		[INI] = Q(PKEY_INDEX) | Q(PORT) | Q(ACCESS_FLAGS), \
		[TGT] = Q(PKEY_INDEX) | Q(PORT) | Q(ACCESS_FLAGS), \
	}
#define CHANGEABLE (Q(CUR_STATE) | Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PATH_MIG_STATE))
#define RTS_ATTRS                                                        \
	{                                                                \
		[RC] = CHANGEABLE | Q(MIN_RNR_TIMER), [UC] = CHANGEABLE, \
		[UD] = Q(CUR_STATE) | Q(QKEY), [INI] = CHANGEABLE,       \
		[TGT] = CHANGEABLE | Q(MIN_RNR_TIMER),                   \
	}

/* A legal transition, with the attributes that must and may be set, by type. RESET is reached from
 * any state, and ERR from any but RESET. */
static const struct transition {
	enum ibv_qp_state from, to;
	int required[TYPES];
	int optional[TYPES];
} transitions[] = {
	{S(RESET), S(INIT), INIT_ATTRS, {0}},
	{S(INIT), S(INIT), {0}, INIT_ATTRS},
	{S(INIT),
	 S(RTR),
	 {[RC] = Q(AV) | Q(PATH_MTU) | Q(DEST_QPN) | Q(RQ_PSN) | Q(MAX_DEST_RD_ATOMIC) |
		 Q(MIN_RNR_TIMER),
	  [UC] = Q(AV) | Q(PATH_MTU) | Q(DEST_QPN) | Q(RQ_PSN),
	  [INI] = Q(AV) | Q(PATH_MTU) | Q(DEST_QPN) | Q(RQ_PSN),
	  [TGT] = Q(AV) | Q(PATH_MTU) | Q(DEST_QPN) | Q(RQ_PSN) | Q(MAX_DEST_RD_ATOMIC) |
		  Q(MIN_RNR_TIMER)},
	 {[RC] = Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX),
	  [UC] = Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX),
	  [UD] = Q(PKEY_INDEX) | Q(QKEY),
	  [INI] = Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX),
	  [TGT] = Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX)}},
	{S(RTR),
	 S(RTS),
	 {[RC] = Q(TIMEOUT) | Q(RETRY_CNT) | Q(RNR_RETRY) | Q(SQ_PSN) | Q(MAX_QP_RD_ATOMIC),
	  [UC] = Q(SQ_PSN),
	  [UD] = Q(SQ_PSN),
	  [INI] = Q(TIMEOUT) | Q(RETRY_CNT) | Q(RNR_RETRY) | Q(SQ_PSN) | Q(MAX_QP_RD_ATOMIC),
	  [TGT] = Q(TIMEOUT) | Q(SQ_PSN)},
	 RTS_ATTRS},
	{S(RTS), S(RTS), {0}, RTS_ATTRS},
	{S(RTS),
	 S(SQD),
	 {0},
	 {[RC] = Q(EN_SQD_ASYNC_NOTIFY),
	  [UC] = Q(EN_SQD_ASYNC_NOTIFY),
	  [UD] = Q(EN_SQD_ASYNC_NOTIFY),
	  [INI] = Q(EN_SQD_ASYNC_NOTIFY),
	  [TGT] = Q(EN_SQD_ASYNC_NOTIFY)}},
	{S(SQD), S(RTS), {0}, RTS_ATTRS},
	{S(SQD),
	 S(SQD),
	 {0},
	 {[RC] = Q(PORT) | Q(AV) | Q(TIMEOUT) | Q(RETRY_CNT) | Q(RNR_RETRY) | Q(MAX_QP_RD_ATOMIC) |
		 Q(MAX_DEST_RD_ATOMIC) | Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX) |
		 Q(MIN_RNR_TIMER) | Q(PATH_MIG_STATE),
	  [UC] = Q(AV) | Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX) | Q(PATH_MIG_STATE),
	  [UD] = Q(PKEY_INDEX) | Q(QKEY),
	  [INI] = Q(PORT) | Q(AV) | Q(TIMEOUT) | Q(RETRY_CNT) | Q(RNR_RETRY) | Q(MAX_QP_RD_ATOMIC) |
		  Q(ALT_PATH) | Q(ACCESS_FLAGS) | Q(PKEY_INDEX) | Q(PATH_MIG_STATE),
	  [TGT] = Q(PORT) | Q(AV) | Q(TIMEOUT) | Q(MAX_DEST_RD_ATOMIC) | Q(ALT_PATH) |
		  Q(ACCESS_FLAGS) | Q(PKEY_INDEX) | Q(MIN_RNR_TIMER) | Q(PATH_MIG_STATE)}},
	{S(SQE),
	 S(RTS),
	 {0},
	 {[UC] = Q(CUR_STATE) | Q(ACCESS_FLAGS), [UD] = Q(CUR_STATE) | Q(QKEY)}},
};

static enum type_idx type_idx(enum ibv_qp_type t)
{
	switch (t) {
	case IBV_QPT_RC:
		return RC;
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_UD:
		return UD;
	case IBV_QPT_XRC_SEND:
		return INI;
	default:
		return TGT;
	}
}

static bool masks_ok(enum ibv_qp_state from, enum ibv_qp_state to, enum ibv_qp_type type, int mask)
{
	enum type_idx t = type_idx(type);
	int rest = mask & ~(Q(STATE) | Q(CUR_STATE));

	/* Only UC and UD have SQE. */
	if (from == S(SQE) && to == S(RTS) && t != UC && t != UD)
		return false;
	/* As in the kernel's table, RESET is left only for INIT. */
	if (to == S(ERR) && from == S(RESET))
		return false;
	if (to == S(RESET) || to == S(ERR))
		return !(mask & ~Q(STATE));
	for (unsigned i = 0; i < sizeof(transitions) / sizeof(*transitions); i++) {
		const struct transition *transition = &transitions[i];

		if (transition->from != from || transition->to != to)
			continue;
		return (rest & transition->required[t]) == transition->required[t] &&
		       !(rest & ~(transition->required[t] | transition->optional[t])) &&
		       (!(mask & Q(CUR_STATE)) || (transition->optional[t] & Q(CUR_STATE)));
	}
	return false;
}

static bool values_ok(const struct shca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	uint8_t max_rd = (uint8_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_RD_ATOMIC);
	enum ibv_mtu active = (enum ibv_mtu)(shca_opt(&shca_self.fabric, SHCA_O_MTU) + IBV_MTU_256);

	return !(((mask & Q(PORT)) && attr->port_num != 1) ||
		 ((mask & Q(PKEY_INDEX)) && attr->pkey_index >= qp->ctx->hca->npkeys) ||
		 ((mask & Q(PATH_MTU)) &&
		  (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > active)) ||
		 ((mask & Q(TIMEOUT)) && attr->timeout > 31) ||
		 ((mask & Q(RETRY_CNT)) && attr->retry_cnt > 7) ||
		 ((mask & Q(RNR_RETRY)) && attr->rnr_retry > 7) ||
		 ((mask & Q(MIN_RNR_TIMER)) && attr->min_rnr_timer > 31) ||
		 ((mask & Q(MAX_QP_RD_ATOMIC)) && attr->max_rd_atomic > max_rd) ||
		 ((mask & Q(MAX_DEST_RD_ATOMIC)) && attr->max_dest_rd_atomic > max_rd) ||
		 ((mask & Q(DEST_QPN)) && attr->dest_qp_num > 0xffffff) ||
		 (mask & (Q(CAP) | Q(ALT_PATH) | Q(PATH_MIG_STATE) | Q(RATE_LIMIT))));
}

static void set_path(struct shca_qp *qp, const struct ibv_qp_attr *attr)
{
	struct shca_qp_entry *entry = qp->entry;
	int hca = shca_address_by_path(shca_self.fabric.hdr, qp->ctx->hca, &attr->ah_attr);

	entry->attr.ah_attr = attr->ah_attr;
	/* A path that leads nowhere is no error here: sends find out. */
	entry->dest_hca = hca < 0 ? UINT32_MAX : (uint32_t)hca;
}

static void apply(struct shca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct shca_qp_entry *entry = qp->entry;

	if (mask & Q(PKEY_INDEX)) {
		entry->attr.pkey_index = attr->pkey_index;
		entry->pkey = qp->ctx->hca->pkeys[attr->pkey_index];
	}
	if (mask & Q(PORT))
		entry->attr.port_num = attr->port_num;
	if (mask & Q(QKEY))
		entry->qkey = entry->attr.qkey = attr->qkey;
	if (mask & Q(ACCESS_FLAGS))
		entry->access = entry->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & Q(AV))
		set_path(qp, attr);
	if (mask & Q(PATH_MTU))
		entry->attr.path_mtu = attr->path_mtu;
	if (mask & Q(DEST_QPN))
		entry->dest_qpn = entry->attr.dest_qp_num = attr->dest_qp_num;
	if (mask & Q(RQ_PSN)) {
		entry->attr.rq_psn = attr->rq_psn & 0xffffff;
		atomic_store(&entry->epsn, entry->attr.rq_psn);
	}
	if (mask & Q(SQ_PSN)) {
		entry->attr.sq_psn = attr->sq_psn & 0xffffff;
		atomic_store(&qp->psn, entry->attr.sq_psn);
		qp->captured = 0;
	}
	if (mask & Q(MAX_DEST_RD_ATOMIC))
		entry->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & Q(MAX_QP_RD_ATOMIC))
		entry->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & Q(MIN_RNR_TIMER))
		entry->attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & Q(TIMEOUT))
		entry->attr.timeout = attr->timeout;
	if (mask & Q(RETRY_CNT))
		entry->attr.retry_cnt = attr->retry_cnt;
	if (mask & Q(RNR_RETRY))
		entry->attr.rnr_retry = attr->rnr_retry;
}

/* ---------------------------------------------------------------- entering a state */

static bool is_target(const struct shca_qp *qp)
{
	return qp->ibv.qp_base.qp_type == IBV_QPT_XRC_RECV;
}

/* Waits until no thread sends to the QP or executes it any more. The requesters of a target QP hold
 * objects of the SRQ's owner, which may be any process. */
static void await_idle(struct shca_qp *qp)
{
	shca_runqueue_remove(qp);
	if (is_target(qp))
		shca_epoch_sync_for(&shca_self.fabric, SHCA_HOLDS_ANY, UINT64_MAX);
	else
		shca_epoch_sync(&shca_self.fabric);
}

static void enter_reset(struct shca_qp *qp)
{
	struct shca_qp_entry *entry = qp->entry;

	shca_flush_disable(qp);
	await_idle(qp);
	/* Forgets all posted requests. A receive of another process's SRQ can't be forgotten. */
	if (is_target(qp))
		shca_flush_held(qp);
	else
		shca_qp_drop_held(qp);
	shca_qp_purge(qp);
	pthread_mutex_lock(&qp->sq_lock);
	qp->head = qp->exec = 0;
	atomic_store(&qp->tail, 0);
	qp->may_send = false;
	qp->cur = (struct shca_progress){0};
	qp->last_visible = qp->link_floor = 0;
	qp->drain_event = false;
	pthread_mutex_unlock(&qp->sq_lock);
	if (qp->rq.shared)
		shca_rq_reset(&qp->rq);
	atomic_store(&entry->last_visible, 0);
	atomic_store(&entry->comm_est, 0);
	memset(&entry->attr, 0, sizeof(entry->attr));
	entry->access = entry->qkey = entry->dest_qpn = 0;
	atomic_store(&qp->flushed, false);
}

/* Flushes a target QP. Another opener may have reset the QP since it went to ERR. */
static void flush_target(struct shca_qp *qp)
{
	await_idle(qp);
	shca_lock(&qp->entry->tgt_lock);
	if (shca_qp_state(qp->entry) == S(ERR))
		shca_flush_held(qp);
	shca_unlock(&qp->entry->tgt_lock);
}

static void enter_sqd(struct shca_qp *qp, bool notify)
{
	pthread_mutex_lock(&qp->sq_lock);
	qp->drain_event = notify;
	/* The thread that executes the queue raises the event when it stops; if there is none,
	 * nothing is under way. */
	if (qp->sched == SHCA_SCHED_IDLE && notify) {
		qp->drain_event = false;
		shca_event_send_qp(&shca_self.fabric, qp->ctx->hca, qp->entry,
				   IBV_EVENT_SQ_DRAINED);
	}
	pthread_mutex_unlock(&qp->sq_lock);
}

static void enter(struct shca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, bool notify)
{
	switch (to) {
	case S(RESET):
		enter_reset(qp);
		break;
	case S(ERR):
		/* ibv_modify_qp() flushes a target QP, without its lock. */
		if (!is_target(qp))
			shca_flush_qp(qp, UINT64_MAX);
		break;
	case S(SQD):
		/* A change of attributes leaves the event that the drain owes. */
		if (from != S(SQD))
			enter_sqd(qp, notify);
		break;
	case S(RTS):
		/* Executes the requests that were posted while the queue was drained. */
		pthread_mutex_lock(&qp->sq_lock);
		qp->may_send = true;
		if (qp->sq)
			shca_post_kick(qp);
		pthread_mutex_unlock(&qp->sq_lock);
		break;
	default:
		break;
	}
}

/* Removes attributes that mean nothing to this half of an XRC connection. The kernel removes
 * them before its checks, so that programs may set both halves up alike. */
static int without_other_half(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(Q(MAX_DEST_RD_ATOMIC) | Q(MIN_RNR_TIMER));
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(Q(MAX_QP_RD_ATOMIC) | Q(RETRY_CNT) | Q(RNR_RETRY));
	return mask;
}

static int modify(struct shca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct shca_qp_entry *entry = qp->entry;
	uint32_t now = atomic_load(&entry->state);
	enum ibv_qp_state from = now, to = mask & Q(STATE) ? attr->qp_state : from;
	int rc;

	if ((mask & Q(CUR_STATE)) && attr->cur_qp_state != from)
		return EINVAL;
	if ((unsigned)to > S(ERR) || to == S(SQE) ||
	    !masks_ok(from, to, qp->ibv.qp_base.qp_type, mask) || !values_ok(qp, attr, mask))
		return EINVAL;
	rc = mask & Q(AV) ? shca_address_check(shca_self.fabric.hdr, qp->ctx->hca, &attr->ah_attr)
			  : 0;
	if (rc)
		return rc;
	apply(qp, attr, mask);
	/* release: peers that see the state see the attributes. An error that came in between
	 * stays. */
	while (!atomic_compare_exchange_weak(&entry->state, &now, to)) {
		if (now == S(ERR) && to != S(RESET) && to != S(ERR))
			return EINVAL;
	}
	/* The public struct follows the requests of its user, not changes that others make to a
	 * shared QP. */
	if (mask & Q(STATE))
		qp->ibv.qp_base.state = to;
	enter(qp, from, to, (mask & Q(EN_SQD_ASYNC_NOTIFY)) && attr->en_sqd_async_notify);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_qp *qp = (struct shca_qp *)ibqp;
	int rc;

	if (!shca_ours(ibqp->context))
		return EIO;
	shca_object_cache_await(qp->ctx->hca, SHCA_QP, qp->idx);
	mask = without_other_half(ibqp->qp_type, mask);
	if (!is_target(qp))
		return modify(qp, attr, mask);
	/* Several processes may have a target QP open. */
	shca_lock(&qp->entry->tgt_lock);
	rc = modify(qp, attr, mask);
	shca_unlock(&qp->entry->tgt_lock);
	if (!rc && (mask & Q(STATE)) && attr->qp_state == S(ERR))
		flush_target(qp);
	return rc;
}

/* Copies the attributes as they were set. */
static void copy_attr(const struct shca_qp *qp, struct ibv_qp_attr *attr)
{
	if (is_target(qp))
		shca_lock(&qp->entry->tgt_lock);
	*attr = qp->entry->attr;
	if (is_target(qp))
		shca_unlock(&qp->entry->tgt_lock);
}

#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* Turns attributes as they were set into those that mlx5 reports: its adapters keep the number of
 * READs as a power of two, and grant no READs and atomics without resources for them. */
static void as_reported(const struct shca_qp *qp, struct ibv_qp_attr *attr)
{
	attr->qp_access_flags &= attr->max_dest_rd_atomic ? REMOTE_ACCESS : IBV_ACCESS_REMOTE_WRITE;
	attr->max_rd_atomic = (uint8_t)shca_pow2_at_least(attr->max_rd_atomic);
	attr->max_dest_rd_atomic = (uint8_t)shca_pow2_at_least(attr->max_dest_rd_atomic);
	if (qp->ibv.qp_base.qp_type == IBV_QPT_UD && attr->qp_state != S(RESET))
		attr->path_mtu = IBV_MTU_4096;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct shca_qp *qp = (struct shca_qp *)ibqp;
	struct shca_qp_entry *entry = qp->entry;

	if (!shca_ours(ibqp->context))
		return EIO;
	if (mask & ~(Q(RATE_LIMIT) - 1))
		return EOPNOTSUPP;
	/* All attributes are cheap, as with mlx5: the mask matters only for the public struct. */
	copy_attr(qp, attr);
	attr->qp_state = attr->cur_qp_state = shca_qp_state(entry);
	attr->rq_psn = atomic_load(&entry->epsn);
	attr->sq_psn = atomic_load(&qp->psn);
	attr->cap = entry->cap;
	as_reported(qp, attr);
	pthread_mutex_lock(&qp->sq_lock);
	attr->sq_draining = attr->qp_state == S(SQD) && qp->sched != SHCA_SCHED_IDLE;
	pthread_mutex_unlock(&qp->sq_lock);
	if (mask & Q(STATE))
		ibqp->state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){.qp_context = ibqp->qp_context,
					  .send_cq = ibqp->send_cq,
					  .recv_cq = ibqp->recv_cq,
					  .srq = ibqp->srq,
					  .cap = entry->cap,
					  .qp_type = ibqp->qp_type,
					  .sq_sig_all = entry->sq_sig_all != 0};
	return 0;
}
