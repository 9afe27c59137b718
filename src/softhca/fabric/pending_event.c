/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending_event.c - noting, sending and clearing pending events.
 */
#include "pending_event.h"

#include "epoch.h"
#include "event.h"
#include "proc.h"
#include "table.h"
#include "xrc_life.h"

/* Converts between event types and shca_exec.pending_event, in which 0 means none. */
static uint32_t word_of(enum ibv_event_type type)
{
	return (uint32_t)((int)type + 2);
}

static enum ibv_event_type type_of(uint32_t word)
{
	return (enum ibv_event_type)((int)word - 2);
}

void shca_pending_event_note(const struct shca_fabric *fabric, const struct shca_hca *hca,
			     enum ibv_event_type type, uint32_t number)
{
	struct shca_exec *exec = shca_epoch_self();

	exec->pending_event_hca = shca_hca_index(fabric, hca);
	exec->pending_event_number = number;
	atomic_store_explicit(&exec->pending_event, word_of(type), memory_order_release);
}

void shca_pending_event_clear(void)
{
	atomic_store_explicit(&shca_epoch_self()->pending_event, 0, memory_order_release);
}

/* Has the owner flush a QP that was put into ERR. A target QP has no queue to flush. */
static void request_flush(struct shca_fabric *fabric, const struct shca_qp_entry *entry)
{
	unsigned proc = shca_word_owner(atomic_load(&entry->state_word));

	if (proc >= SHCA_MAX_PROCS || entry->type == IBV_QPT_XRC_RECV)
		return;
	atomic_fetch_or(&fabric->hdr->procs[proc].attention, SHCA_ATTENTION_QP);
	shca_proc_notify(fabric, &fabric->hdr->procs[proc]);
}

/* ---- sending ---- */

/* Sends the event about a QP. `inherited`: the sender died, and whether it made the change has
 * to be looked up. */
static void send_for_qp(struct shca_fabric *fabric, struct shca_hca *hca, uint32_t number,
			enum ibv_event_type type, bool inherited)
{
	const struct shca_qp_entry *entry = shca_table_find(fabric, hca, SHCA_QP, number, NULL);
	bool fails = type != IBV_EVENT_COMM_EST;

	if (!entry)
		return;
	if (inherited &&
	    !(fails ? atomic_load(&entry->state) == IBV_QPS_ERR : atomic_load(&entry->comm_est)))
		return;
	if (type != SHCA_NO_EVENT)
		shca_event_send_qp(fabric, hca, entry, type);
	if (fails)
		request_flush(fabric, entry);
}

static void send_for_srq(struct shca_fabric *fabric, struct shca_hca *hca, uint32_t number,
			 bool inherited)
{
	struct shca_event ev = {.kind = IBV_EVENT_SRQ_LIMIT_REACHED, .number = number};
	const struct shca_srq_entry *entry =
		shca_table_find(fabric, hca, SHCA_SRQ, number, &ev.idx);

	if (entry && !(inherited && atomic_load(&entry->rq.limit)))
		shca_event_send(fabric, hca, shca_word_owner(atomic_load(&entry->state_word)),
				entry->async_channel, &ev);
}

static void send_for_cq(struct shca_fabric *fabric, struct shca_hca *hca, uint32_t number,
			bool inherited)
{
	struct shca_event ev = {.kind = IBV_EVENT_CQ_ERR, .number = number};
	const struct shca_cq_entry *cq_entry =
		shca_table_find(fabric, hca, SHCA_CQ, number, &ev.idx);

	if (cq_entry && !(inherited && !atomic_load(&cq_entry->overrun)))
		shca_event_send(fabric, hca, shca_word_owner(atomic_load(&cq_entry->state_word)),
				cq_entry->async_channel, &ev);
}

static void send_pending(struct shca_fabric *fabric, struct shca_hca *hca, enum ibv_event_type type,
			 uint32_t number, bool inherited)
{
	if (type == IBV_EVENT_SRQ_LIMIT_REACHED)
		send_for_srq(fabric, hca, number, inherited);
	else if (type == IBV_EVENT_CQ_ERR)
		send_for_cq(fabric, hca, number, inherited);
	else
		send_for_qp(fabric, hca, number, type, inherited);
}

void shca_pending_event_send(struct shca_fabric *fabric, struct shca_hca *hca,
			     enum ibv_event_type type, uint32_t number)
{
	send_pending(fabric, hca, type, number, false);
	shca_pending_event_clear();
}

void shca_pending_event_reap(struct shca_fabric *fabric, unsigned proc)
{
	for (unsigned i = 0; i < SHCA_MAX_EXEC; i++) {
		struct shca_exec *exec = &fabric->hdr->procs[proc].exec[i];
		uint32_t word = atomic_load_explicit(&exec->pending_event, memory_order_acquire);

		if (!word)
			continue;
		send_pending(fabric, &fabric->hdr->hcas[exec->pending_event_hca], type_of(word),
			     exec->pending_event_number, true);
		/* If this process dies first, the next reaper does it again. */
		atomic_store_explicit(&exec->pending_event, 0, memory_order_relaxed);
	}
}
