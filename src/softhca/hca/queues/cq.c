/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.c - making, resizing and ending completion queues.
 */
#include "cq.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "cq_bounce.h"
#include "cq_event.h"
#include "cq_heap.h"
#include "cq_ring.h"
#include "fabric/arena.h"
#include "fabric/epoch.h"
#include "fabric/event.h"
#include "hca/context_objects.h"
#include "hca/domains.h"
#include "hca/event_ack.h"
#include "hca/object_index.h"
#include "hca/sizes.h"

/* Keeps a CQ from being freed while shca_cq_deliver_all_payloads() looks at it. */
static pthread_mutex_t cqs_lock = PTHREAD_MUTEX_INITIALIZER;

void shca_cq_reset(void)
{
	pthread_mutex_init(&cqs_lock, NULL);
}

/* Makes a ring for at least that many completions. */
static int ring_make(struct shca_cq *cq, uint32_t cqe)
{
	uint64_t off, len, slots;
	uint32_t log2 = 0;

	while ((1u << log2) < cqe + 1)
		log2++;
	len = shca_cq_ring_len(1ULL << log2, cq->stride);
	slots = shca_cq_ring_first(1ULL << log2, cq->stride);
	off = shca_arena_reserve(&shca_self.fabric, shca_self.slot, len,
				 shca_cq_ring_len(slots, cq->stride));
	if (!off)
		return -ENOMEM;
	cq->ring_off = off;
	cq->ring_len = len;
	cq->ring = shca_arena(&shca_self.fabric, shca_self.slot, off, len);
	cq->log2_slots = log2;
	shca_cq_ring_free_slots(cq->ring, cq->stride, 0, slots);
	atomic_store(&((struct shca_cq_ring *)(void *)cq->ring)->backed, slots);
	return 0;
}

static void ring_free(struct shca_cq *cq)
{
	uint64_t slots = atomic_load(&((struct shca_cq_ring *)(void *)cq->ring)->backed);

	shca_arena_unreserve(&shca_self.fabric, shca_self.slot, cq->ring_off, cq->ring_len,
			     shca_cq_ring_len(slots, cq->stride));
}

/* Returns the bytes of a slot. Short payloads go into the slot, larger ones into bounce buffers. */
static uint32_t slot_stride(void)
{
	uint64_t payload = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CQE_PAYLOAD);

	if (payload > SHCA_CQ_SHORT)
		payload = SHCA_CQ_SHORT;
	return (uint32_t)shca_round_line(offsetof(struct shca_cqe, data) + payload);
}

static uint64_t bounces_len(const struct shca_cq_entry *entry)
{
	return (uint64_t)atomic_load(&entry->nbounces) * shca_cq_bounce_stride(entry->room);
}

/* There are no more buffers than slots, because the others would stay empty. If there is no
 * memory, the CQ has no buffers. */
void shca_cq_make_bounces(struct shca_cq *cq)
{
	struct shca_cq_entry *entry = cq->entry;
	uint32_t n = 1u << cq->log2_slots;

	if (n > SHCA_CQ_BOUNCES)
		n = SHCA_CQ_BOUNCES;
	pthread_mutex_lock(&cq->lock);
	if (!atomic_load(&entry->nbounces) && entry->room > shca_cq_ring_slot_room(entry->stride)) {
		entry->bounces = shca_arena_alloc(&shca_self.fabric, shca_self.slot,
						  (uint64_t)n * shca_cq_bounce_stride(entry->room));
		/* release: a process that sees the number finds the buffers. */
		atomic_store_explicit(&entry->nbounces, entry->bounces ? n : 0,
				      memory_order_release);
	}
	pthread_mutex_unlock(&cq->lock);
}

static void memory_free(struct shca_cq *cq)
{
	if (cq->ring_off)
		ring_free(cq);
	if (atomic_load(&cq->entry->nbounces))
		shca_arena_free(&shca_self.fabric, shca_self.slot, cq->entry->bounces,
				bounces_len(cq->entry));
}

/* Returns the capacity, as mlx5 reports it: a power of two less one, but not above the device's
 * limit. */
static uint32_t capacity(uint32_t log2_slots)
{
	uint32_t most = (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_CQE);
	uint32_t n = (1u << log2_slots) - 1;

	return n < most ? n : most;
}

static void init_locks(struct shca_cq *cq)
{
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->polling, NULL);
}

/* Returns 0, or an errno if a CQ can't be made with these. */
static int check(struct ibv_context *ibctx, uint32_t cqe, const struct ibv_comp_channel *channel,
		 uint32_t vector)
{
	if (!shca_ours(ibctx))
		return EIO;
	/* The kernel looks the channel up among the context's own descriptors. */
	if (channel && channel->context != ibctx)
		return EBADF;
	if (!cqe || cqe > (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_CQE) ||
	    vector >= (uint32_t)ibctx->num_comp_vectors)
		return EINVAL;
	return 0;
}

static struct shca_cq *cq_make(struct ibv_context *ibctx, uint32_t cqe, void *user,
			       struct ibv_comp_channel *channel, uint32_t vector)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(ibctx);
	struct shca_cq *cq;
	int64_t idx;

	errno = check(ibctx, cqe, channel, vector);
	if (errno)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	idx = shca_table_alloc(&shca_self.fabric, ctx->hca, SHCA_CQ, shca_self.slot);
	if (idx < 0) {
		errno = (int)-idx;
		goto free_cq;
	}
	cq->idx = (uint32_t)idx;
	cq->entry = shca_table_entry(&shca_self.fabric, &ctx->hca->tables[SHCA_CQ], cq->idx);
	atomic_store(&cq->entry->nbounces, 0);
	cq->number = shca_table_number(cq->entry);
	cq->stride = slot_stride();
	init_locks(cq);
	cq->ibv.context = ibctx;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = user;
	cq->ibv.handle = cq->idx;
	/* The CQ is known by its index from here on: shca_cq_deliver_all_payloads() may look at
	 * it. */
	if (ring_make(cq, cqe) || shca_object_index_set(ctx->hca_idx, SHCA_CQ, cq->idx, cq)) {
		errno = ENOMEM;
		goto free_entry;
	}
	cq->ibv.cqe = (int)capacity(cq->log2_slots);
	cq->entry->stride = cq->stride;
	cq->entry->room = (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_CQE_PAYLOAD);
	cq->entry->channel = channel ? ((struct shca_channel *)channel)->id + 1 : 0;
	cq->entry->async_channel = ctx->async_channel;
	atomic_store(&cq->entry->limit, (uint32_t)cq->ibv.cqe);
	atomic_store(&cq->entry->ring, cq->ring_off << 8 | cq->log2_slots);
	if (channel) {
		pthread_mutex_lock(&ibctx->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&ibctx->mutex);
	}
	shca_context_objects_add(ibctx, &cq->context_node, SHCA_OBJECT_CQ, cq);
	shca_table_publish(cq->entry);
	return cq;
free_entry:
	memory_free(cq);
	shca_table_free(ctx->hca, SHCA_CQ, cq->entry);
free_cq:
	free(cq);
	return NULL;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
			     struct ibv_comp_channel *channel, int vector)
{
	struct shca_cq *cq;

	if (cqe < 1 || vector < 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = cq_make(ctx, (uint32_t)cqe, user, channel, (uint32_t)vector);
	return cq ? (struct ibv_cq *)&cq->ibv : NULL;
}

struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t stamps =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const uint32_t flags =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	struct shca_cq *cq;

	if ((attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS) ||
	    (attr->comp_mask &
	     ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* As with mlx5, the domain has to be a parent domain. */
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || !((struct shca_pd *)attr->parent_domain)->protection_domain)) {
		errno = EINVAL;
		return NULL;
	}
	cq = cq_make(ctx, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->parent_domain = shca_pd_use(attr->parent_domain);
	/* IGNORE_OVERRUN promises that the user never lets the queue overrun; overruns are
	 * caught all the same. */
	shca_cq_ex_init(cq, attr->wc_flags);
	cq->entry->stamps = !!(attr->wc_flags & stamps);
	return &cq->ibv;
}

int shca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_cq *cq = (struct shca_cq *)ibcq;

	if (!shca_ours(ibcq->context))
		return EIO;
	if (!attr->attr_mask)
		return EINVAL;
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EOPNOTSUPP;
	if (attr->moderate.cq_period > SHCA_CQ_MOST_PERIOD)
		return EINVAL;
	shca_cq_moderate(shca_ctx(ibcq->context)->hca, cq->entry, attr->moderate.cq_count,
			 attr->moderate.cq_period);
	return 0;
}

/*
 * Swaps the ring under the producers, who find the new one through entry->ring. After a grace
 * period no producer uses the old ring, and its completions wait in the heap. `polled` goes on
 * counting; the new ring's bias relates its positions to that count.
 */
int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_cq *cq = (struct shca_cq *)ibcq;
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_cq *next; /* only its ring */
	struct shca_cq_ring *old, *new;
	uint64_t tail;
	int ret = 0;

	if (!shca_ours(ibcq->context))
		return EIO;
	if (cqe < 1 || cqe > shca_opt(fabric, SHCA_O_MAX_CQE))
		return EINVAL;
	/* Too large for a small stack. */
	next = calloc(1, sizeof(*next));
	if (!next)
		return ENOMEM;
	next->stride = cq->stride;
	pthread_mutex_lock(&cq->lock);
	old = (struct shca_cq_ring *)(void *)cq->ring;
	tail = atomic_load(&old->tail);
	/* The difference is negative if a completion was polled whose producer hasn't moved the
	 * tail yet. */
	if ((int64_t)(tail - old->bias - atomic_load(&cq->entry->polled)) > cqe)
		ret = EINVAL;
	else if (ring_make(next, (uint32_t)cqe))
		ret = ENOMEM;
	if (ret)
		goto out;
	new = (struct shca_cq_ring *)(void *)next->ring;
	/* Position 0 of the new ring is the `tail` of the old one. The wrap of unsigned numbers
	 * is intended. */
	atomic_store(&new->bias, old->bias - tail);
	atomic_store(&cq->entry->limit, capacity(next->log2_slots));
	atomic_store(&cq->entry->ring, next->ring_off << 8 | next->log2_slots);
	shca_epoch_sync(fabric);
	shca_cq_repair_tail(cq);
	shca_cq_close_ring(cq);
	/* Completions that were claimed in the old ring meanwhile count too. */
	atomic_fetch_sub(&new->bias, atomic_load(&old->tail) - tail);
	ring_free(cq);
	cq->ring = next->ring;
	cq->ring_off = next->ring_off;
	cq->ring_len = next->ring_len;
	cq->log2_slots = next->log2_slots;
	__atomic_store_n(&cq->next, 0, __ATOMIC_RELAXED);
	ibcq->cqe = (int)capacity(cq->log2_slots);
out:
	pthread_mutex_unlock(&cq->lock);
	free(next);
	return ret;
}

void shca_cq_end(struct shca_cq *cq)
{
	struct shca_context *ctx = shca_ctx(cq->ibv.context);

	shca_table_retire(cq->entry);
	shca_event_ack_lock();
	pthread_mutex_lock(&cqs_lock);
	shca_object_index_set(ctx->hca_idx, SHCA_CQ, cq->idx, NULL);
	pthread_mutex_unlock(&cqs_lock);
	shca_event_ack_unlock();
	shca_epoch_sync(&shca_self.fabric);
	shca_event_forget(&shca_self.fabric, ctx->hca, shca_self.slot, ctx->async_channel, cq->idx,
			  cq->number);
	if (cq->ibv.channel)
		shca_event_forget(&shca_self.fabric, ctx->hca, shca_self.slot,
				  cq->entry->channel - 1, cq->idx, cq->number);
	shca_cq_heap_free(cq);
	memory_free(cq);
	shca_table_free(ctx->hca, SHCA_CQ, cq->entry);
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_cq *cq = (struct shca_cq *)ibcq;

	if (!shca_ours(ibcq->context))
		return EIO;
	if (atomic_load(&cq->refs))
		return EBUSY;
	shca_spin_forget_places();
	shca_context_objects_remove(&cq->context_node);
	shca_cq_end(cq);
	/* Both counters of given events stand still now, so waiting for one after the other is
	 * enough. */
	shca_event_ack_wait(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed,
			    &cq->comp_events_given);
	shca_event_ack_wait(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed,
			    &cq->async_events_given);
	if (ibcq->channel) {
		pthread_mutex_lock(&ibcq->context->mutex);
		ibcq->channel->refcnt--;
		pthread_mutex_unlock(&ibcq->context->mutex);
	}
	if (cq->parent_domain)
		atomic_fetch_sub(&cq->parent_domain->refs, 1);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->polling);
	free(cq);
	return 0;
}

struct ibv_cq *shca_cq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number)
{
	struct shca_cq *cq = shca_object_index_get(ctx->hca_idx, SHCA_CQ, idx);

	return cq && cq->number == number ? (struct ibv_cq *)&cq->ibv : NULL;
}

static void deliver_cq_payloads(void *object, void *arg)
{
	(void)arg;
	shca_cq_deliver_payloads(object);
}

void shca_cq_deliver_all_payloads(void)
{
	pthread_mutex_lock(&cqs_lock);
	shca_object_index_each(SHCA_CQ, deliver_cq_payloads, NULL);
	pthread_mutex_unlock(&cqs_lock);
}
