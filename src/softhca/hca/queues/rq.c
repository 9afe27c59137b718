/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rq.c - posting, claiming and releasing receives.
 */
#include "rq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/arena.h"
#include "fabric/proc.h"
#include "fabric/trace.h"
#include "hca/sizes.h"

/*
 * A zero-length SGE in an SRQ WQE: mlx5 writes byte_count 0, which its hardware reads as 2 GiB. In
 * the WQE of an RQ the driver leaves such entries out.
 */
#define ZERO_LENGTH_TRAP 0x80000000u

/* Returns how far behind the ring's start the WQEs begin. */
static uint64_t wqes_off(const struct shca_rq_local *rq)
{
	return rq->shared->wqes - rq->shared->ring;
}

/* Notes that the first `bytes` bytes of the rings have memory. */
static void set_backed(struct shca_rq_local *rq, uint64_t bytes)
{
	rq->backed = bytes;
	rq->backed_wqes = (uint32_t)((bytes - wqes_off(rq)) / rq->shared->stride);
}

/* Makes all WQE slots the owner's; the first one is on top. */
static void fill_free_list(struct shca_rq_local *rq)
{
	rq->nfree = rq->shared->max_wr;
	for (uint32_t i = 0; i < rq->nfree; i++)
		rq->free_list[i] = rq->nfree - 1 - i;
}

int shca_rq_init(struct shca_rq_local *rq, struct shca_rq *shared, bool is_srq, uint32_t *max_wr,
		 uint32_t max_sge)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	uint32_t size = shca_pow2_at_least(is_srq ? *max_wr + 1 : *max_wr ? *max_wr : 1);
	uint32_t most = (uint32_t)shca_opt(fabric, is_srq ? SHCA_O_MAX_SRQ_WR : SHCA_O_MAX_QP_WR);
	uint64_t ring_bytes, off;
	char *mem;

	shared->size = size;
	shared->max_wr = is_srq ? size - 1 : *max_wr ? size : 0;
	if (shared->max_wr > most)
		shared->max_wr = most;
	shared->max_sge = max_sge ? max_sge : 1;
	shared->stride = (uint32_t)shca_round_line(sizeof(struct shca_rwqe) +
						   shared->max_sge * sizeof(struct ibv_sge));
	ring_bytes = shca_round_line((uint64_t)size * sizeof(uint64_t));
	rq->ring_len = ring_bytes + (uint64_t)size * shared->stride;
	/* Requesters look at any position, but only at WQEs that are posted. */
	rq->backed = ring_bytes + SHCA_ARENA_FIRST < rq->ring_len ? ring_bytes + SHCA_ARENA_FIRST
								  : rq->ring_len;
	off = shca_arena_reserve(fabric, shca_self.slot, rq->ring_len, rq->backed);
	if (!off)
		return -ENOMEM;
	rq->free_list = malloc(size * sizeof(*rq->free_list));
	mem = shca_arena(fabric, shca_self.slot, off, rq->ring_len);
	if (!rq->free_list || !mem) {
		free(rq->free_list);
		shca_arena_unreserve(fabric, shca_self.slot, off, rq->ring_len, rq->backed);
		return -ENOMEM;
	}
	rq->ring_off = off;
	rq->shared = shared;
	rq->ring = (_Atomic uint64_t *)(void *)mem;
	rq->wqes = mem + ring_bytes;
	rq->mask = size - 1;
	rq->is_srq = is_srq;
	shared->ring = off;
	shared->wqes = off + ring_bytes;
	set_backed(rq, rq->backed);
	fill_free_list(rq);
	pthread_mutex_init(&rq->lock, NULL);
	*max_wr = shared->max_wr;
	return 0;
}

void shca_rq_fini(struct shca_rq_local *rq)
{
	if (!rq->shared)
		return;
	shca_arena_unreserve(&shca_self.fabric, shca_self.slot, rq->ring_off, rq->ring_len,
			     rq->backed);
	free(rq->free_list);
	pthread_mutex_destroy(&rq->lock);
	rq->shared = NULL;
}

static void write_wqe(struct shca_rq_local *rq, struct shca_rwqe *wqe, const struct ibv_recv_wr *wr)
{
	uint32_t n = 0;

	wqe->wr_id = wr->wr_id;
	for (int i = 0; i < wr->num_sge; i++) {
		struct ibv_sge s = wr->sg_list[i];

		if (!s.length && !rq->is_srq)
			continue;
		if (!s.length)
			s.length = ZERO_LENGTH_TRAP;
		wqe->sge[n++] = s;
	}
	wqe->num_sge = n;
}

/* Wakes the processes that found the queue empty. Each bit is cleared before its process is
 * woken, so none is missed. */
void shca_rq_wake_waiters(struct shca_rq *rq)
{
	/* Pairs with the fence in shca_rq_add_waiter(): either the waiter finds the posted receive,
	 * or this thread sees it waiting. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&rq->rnr_waiting, memory_order_relaxed))
		return;
	atomic_exchange(&rq->rnr_waiting, false);
	for (unsigned i = 0; i < SHCA_MAX_PROCS / 64; i++) {
		uint64_t bits = atomic_exchange(&rq->rnr_waiters[i], 0);

		for (; bits; bits &= bits - 1) {
			unsigned proc = i * 64 + (unsigned)__builtin_ctzll(bits);
			struct shca_proc *record = &shca_self.fabric.hdr->procs[proc];

			atomic_fetch_or(&record->attention, SHCA_ATTENTION_RNR);
			shca_proc_notify(&shca_self.fabric, record);
		}
	}
}

/* Bytes by which the memory of the WQEs grows: a choice, like RING_STEP in cq_produce.c. */
#define WQES_STEP (256u << 10)

/* Backs the WQE of a slot with memory. Returns false if there is none. The caller holds
 * rq->lock. */
static bool back_wqe(struct shca_rq_local *rq, uint32_t slot)
{
	uint64_t end = wqes_off(rq) + (slot + 1ull) * rq->shared->stride;

	end = end + WQES_STEP < rq->ring_len ? end + WQES_STEP : rq->ring_len;
	if (shca_arena_back(&shca_self.fabric, shca_self.slot, rq->ring_off, rq->backed, end))
		return false;
	shca_arena_count(&shca_self.fabric, shca_self.slot, rq->backed, end);
	set_backed(rq, end);
	return true;
}

/* Returns why a receive can't be posted, or 0. mlx5 looks for room first if the queue is a QP's,
 * and at the number of elements first if it is an SRQ. */
static int refusal(const struct shca_rq_local *rq, const struct ibv_recv_wr *wr, int max_sge)
{
	bool bad_list = wr->num_sge < 0 || wr->num_sge > max_sge;

	if (bad_list && (rq->is_srq || rq->nfree))
		return EINVAL;
	return rq->nfree ? 0 : ENOMEM;
}

int shca_rq_post(struct shca_rq_local *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		 int max_sge)
{
	struct shca_rq *shared = rq->shared;
	uint64_t tail;
	int rc = 0;

	pthread_mutex_lock(&rq->lock);
	tail = atomic_load_explicit(&shared->tail, memory_order_relaxed);
	for (; wr; wr = wr->next) {
		uint32_t slot;

		rc = refusal(rq, wr, max_sge);
		if (rc)
			break;
		slot = rq->free_list[rq->nfree - 1];
		if (slot >= rq->backed_wqes && !back_wqe(rq, slot)) {
			rc = ENOMEM;
			break;
		}
		rq->nfree--;
		write_wqe(rq, shca_rq_own_wqe(rq, slot), wr);
		/* release: a requester that finds this position finds the WQE written. */
		atomic_store_explicit(&rq->ring[tail & rq->mask], (tail + 1) << 32 | slot,
				      memory_order_release);
		tail++;
	}
	atomic_store_explicit(&shared->tail, tail, memory_order_release);
	pthread_mutex_unlock(&rq->lock);
	shca_rq_wake_waiters(shared);
	if (rc)
		*bad = wr;
	return rc;
}

void shca_rq_trace(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *end, uint32_t qpn,
		   uint32_t srqn)
{
	uint64_t now = shca_now();

	for (; wr != end; wr = wr->next) {
		struct shca_trace_record record = {
			.kind = SHCA_TRACE_RECV, .from = now, .to = now, .qpn = qpn, .srqn = srqn};

		for (int i = 0; i < wr->num_sge; i++)
			record.bytes += wr->sg_list[i].length;
		shca_trace_add(&record);
	}
}

void shca_rq_release_locked(struct shca_rq_local *rq, uint32_t slot)
{
	uint64_t tail;

	assert(rq->nfree < rq->shared->max_wr);
	rq->free_list[rq->nfree++] = slot & rq->mask;
	/* The next post writes there, and a requester read it last. */
	tail = atomic_load_explicit(&rq->shared->tail, memory_order_relaxed);
	shca_prefetch_write(shca_rq_own_wqe(rq, slot));
	shca_prefetch_write(&rq->ring[tail & rq->mask]);
}

void shca_rq_release(struct shca_rq_local *rq, uint32_t slot)
{
	pthread_mutex_lock(&rq->lock);
	shca_rq_release_locked(rq, slot);
	pthread_mutex_unlock(&rq->lock);
}

void shca_rq_reset(struct shca_rq_local *rq)
{
	pthread_mutex_lock(&rq->lock);
	memset((void *)rq->ring, 0, ((size_t)rq->mask + 1) * sizeof(*rq->ring));
	atomic_store(&rq->shared->returned, 0);
	atomic_store(&rq->shared->head, 0);
	atomic_store(&rq->shared->tail, 0);
	fill_free_list(rq);
	pthread_mutex_unlock(&rq->lock);
}

void shca_rq_mark(struct shca_rq_local *rq, bool *slots)
{
	uint64_t tail = atomic_load(&rq->shared->tail);

	for (uint32_t i = 0; i < rq->nfree; i++)
		slots[rq->free_list[i]] = true;
	for (uint64_t pos = atomic_load(&rq->shared->head); pos < tail; pos++)
		slots[atomic_load(&rq->ring[pos & rq->mask]) & rq->mask] = true;
	for (uint32_t next = (uint32_t)atomic_load(&rq->shared->returned); next;
	     next = atomic_load(&shca_rq_own_wqe(rq, next - 1)->next_returned))
		slots[(next - 1) & rq->mask] = true;
}

static _Atomic uint32_t *next_returned(char *mem, const struct shca_rq *rq, uint32_t slot)
{
	return &shca_rq_wqe(mem, rq, slot)->next_returned;
}

/* Returns the word of the stack after a change that puts `next`, a slot + 1, on top. */
static uint64_t changed_top(uint64_t word, uint32_t next)
{
	return ((word >> 32) + 1) << 32 | next;
}

/* Claims a receive that was given back. Returns false if there is none. */
static bool claim_returned(char *mem, struct shca_rq *rq, uint32_t *slot)
{
	uint64_t word = atomic_load(&rq->returned);
	uint32_t next;

	do {
		if (!(uint32_t)word)
			return false;
		*slot = ((uint32_t)word - 1) & (rq->size - 1);
		next = atomic_load(next_returned(mem, rq, *slot));
	} while (!atomic_compare_exchange_weak(&rq->returned, &word, changed_top(word, next)));
	return true;
}

void shca_rq_return(char *mem, struct shca_rq *rq, uint32_t slot)
{
	uint64_t word = atomic_load(&rq->returned);

	do
		atomic_store(next_returned(mem, rq, slot), (uint32_t)word);
	while (!atomic_compare_exchange_weak(&rq->returned, &word, changed_top(word, slot + 1)));
}

bool shca_rq_claim(char *mem, struct shca_rq *rq, uint32_t *slot)
{
	_Atomic uint64_t *ring = (_Atomic uint64_t *)(void *)mem;
	uint64_t head;

	if (__builtin_expect(atomic_load_explicit(&rq->returned, memory_order_relaxed) & UINT32_MAX,
			     0) &&
	    claim_returned(mem, rq, slot))
		return true;
	head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	for (;;) {
		uint64_t e =
			atomic_load_explicit(&ring[head & (rq->size - 1)], memory_order_acquire);

		if ((uint32_t)(e >> 32) != (uint32_t)(head + 1)) {
			uint64_t again = atomic_load_explicit(&rq->head, memory_order_relaxed);

			if (again == head)
				return false;
			head = again;
			continue;
		}
		if (atomic_compare_exchange_weak_explicit(&rq->head, &head, head + 1,
							  memory_order_acq_rel,
							  memory_order_relaxed)) {
			*slot = (uint32_t)e & (rq->size - 1);
			/*
			 * The owner wrote this line last: fetch the next one while this message
			 * goes on.
			 */
			e = atomic_load_explicit(&ring[(head + 1) & (rq->size - 1)],
						 memory_order_relaxed);
			if ((uint32_t)(e >> 32) == (uint32_t)(head + 2))
				__builtin_prefetch(shca_rq_wqe(mem, rq, (uint32_t)e));
			return true;
		}
	}
}

void shca_rq_add_waiter(struct shca_rq *rq)
{
	atomic_fetch_or(&rq->rnr_waiters[shca_self.slot / 64], 1ULL << (shca_self.slot % 64));
	atomic_store(&rq->rnr_waiting, true);
	atomic_thread_fence(memory_order_seq_cst);
}

uint32_t shca_rq_posted(const struct shca_rq *rq)
{
	uint64_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);

	return tail > head ? (uint32_t)(tail - head) : 0;
}
