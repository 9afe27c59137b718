/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_pair.c - the error that ends a queue pair.
 */
#include "queue_pair.h"

#include "fabric/pending_event.h"

void shca_qp_fail(struct shca_hca *hca, struct shca_qp_entry *entry, enum ibv_event_type type)
{
	uint32_t s = atomic_load(&entry->state), number = shca_table_number(entry);
	bool ours = false;

	shca_pending_event_note(&shca_self.fabric, hca, type, number);
	while (!ours && s != IBV_QPS_ERR && s != IBV_QPS_RESET)
		ours = atomic_compare_exchange_weak(&entry->state, &s, IBV_QPS_ERR);
	if (ours)
		shca_pending_event_send(&shca_self.fabric, hca, type, number);
	else
		shca_pending_event_clear();
}
