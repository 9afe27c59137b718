/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.c - an HCA's counters. Those on the way of a message are kept in its QPs, each with one
 * writer; an HCA's count is what its QPs have, what QPs that are gone had, and what is counted in
 * the HCA itself.
 */
#include "fabric.h"

#include "table.h"

const char *const shca_counter_names[SHCA_C_COUNT] = {
	[SHCA_C_TX_PACKETS] = "tx_packets",
	[SHCA_C_TX_BYTES] = "tx_bytes",
	[SHCA_C_RX_PACKETS] = "rx_packets",
	[SHCA_C_RX_BYTES] = "rx_bytes",
	[SHCA_C_SENDS] = "sends",
	[SHCA_C_WRITES] = "writes",
	[SHCA_C_READS] = "reads",
	[SHCA_C_ATOMICS] = "atomics",
	[SHCA_C_RNR_NAKS] = "rnr_naks",
	[SHCA_C_RNR_RETRY_EXC] = "rnr_retry_exceeded",
	[SHCA_C_RETRIES] = "retries",
	[SHCA_C_RETRY_EXC] = "retry_exceeded",
	[SHCA_C_LOC_LEN_ERR] = "local_length_errors",
	[SHCA_C_LOC_PROT_ERR] = "local_protection_errors",
	[SHCA_C_REM_INV_REQ] = "remote_invalid_requests",
	[SHCA_C_REM_ACCESS] = "remote_access_errors",
	[SHCA_C_REM_OP] = "remote_operation_errors",
	[SHCA_C_FLUSHED] = "flushed",
	[SHCA_C_CQ_OVERRUN] = "cq_overruns",
	[SHCA_C_UD_DROPPED] = "ud_dropped",
	[SHCA_C_UC_DROPPED] = "uc_dropped",
	[SHCA_C_PKEY_VIOLATIONS] = "pkey_violations",
	[SHCA_C_QKEY_VIOLATIONS] = "qkey_violations",
	[SHCA_C_FAULTS] = "faults_injected",
	[SHCA_C_EVENTS_LOST] = "events_lost",
	[SHCA_C_MEMLOCK_FAILURES] = "memlock_failures",
	[SHCA_C_EXEC_CALLER] = "executed_by_caller",
	[SHCA_C_EXEC_ENGINE] = "executed_by_engine",
	[SHCA_C_DIRECT] = "direct_accesses",
	[SHCA_C_DOUBLE_COPY] = "double_copies",
};

const char *const shca_counter_help[SHCA_C_COUNT] = {
	[SHCA_C_TX_PACKETS] = "packets sent, of the path's MTU",
	[SHCA_C_TX_BYTES] = "bytes of messages sent",
	[SHCA_C_SENDS] = "sends",
	[SHCA_C_WRITES] = "RDMA writes",
	[SHCA_C_READS] = "RDMA reads",
	[SHCA_C_ATOMICS] = "atomic operations",
	[SHCA_C_EXEC_CALLER] = "messages executed by the thread that posted them",
	[SHCA_C_EXEC_ENGINE] = "messages executed by an engine thread",
	[SHCA_C_DIRECT] = "writes, reads and atomics that needed no system call",
	[SHCA_C_RX_PACKETS] = "packets received",
	[SHCA_C_RX_BYTES] = "bytes of messages received",
	[SHCA_C_RNR_NAKS] = "tries to send that found no receive at this adapter",
	[SHCA_C_RNR_RETRY_EXC] = "sends that gave up on a missing receive",
	[SHCA_C_RETRIES] = "tries after one that had no answer",
	[SHCA_C_RETRY_EXC] = "requests that gave up without an answer",
	[SHCA_C_LOC_LEN_ERR] = "completions with a local length error",
	[SHCA_C_LOC_PROT_ERR] = "completions with a local protection error",
	[SHCA_C_REM_INV_REQ] = "requests that the responder found invalid",
	[SHCA_C_REM_ACCESS] = "requests that the responder's keys didn't allow",
	[SHCA_C_REM_OP] = "requests that the responder failed to execute",
	[SHCA_C_FLUSHED] = "requests that a queue in error flushed",
	[SHCA_C_CQ_OVERRUN] = "completion queues that overran",
	[SHCA_C_UD_DROPPED] = "datagrams dropped",
	[SHCA_C_UC_DROPPED] = "messages on unreliable connections that the responder dropped",
	[SHCA_C_PKEY_VIOLATIONS] = "packets of another partition",
	[SHCA_C_QKEY_VIOLATIONS] = "datagrams with a wrong queue key",
	[SHCA_C_FAULTS] = "faults injected by the options that ask for them",
	[SHCA_C_EVENTS_LOST] = "asynchronous and completion events that found no room",
	[SHCA_C_MEMLOCK_FAILURES] = "registrations that the memlock limit refused",
	[SHCA_C_DOUBLE_COPY] = ("pieces of data copied through shared memory, as the kernel allows "
				"no direct access"),
};

static void total(const struct shca_fabric *f, const struct shca_hca *hca, uint64_t *c)
{
	const struct shca_table *t = &hca->tables[SHCA_QP];
	uint32_t high = atomic_load(&t->high);

	for (unsigned i = 0; i < SHCA_C_COUNT; i++)
		c[i] = atomic_load_explicit(&hca->counters[i], memory_order_relaxed);
	for (uint32_t q = 0; q < high; q++) {
		const struct shca_qp_entry *e = shca_table_entry(f, t, q);

		if (shca_life_state(atomic_load(&e->life)) == SHCA_FREE)
			continue;
		for (unsigned i = 0; i < SHCA_C_PER_QP; i++)
			c[i] += atomic_load_explicit(&e->counters[i], memory_order_relaxed);
		c[SHCA_C_RX_PACKETS] += atomic_load_explicit(&e->rx_packets, memory_order_relaxed);
		c[SHCA_C_RX_BYTES] += atomic_load_explicit(&e->rx_bytes, memory_order_relaxed);
	}
}

void shca_counters_read(const struct shca_fabric *f, const struct shca_hca *hca,
			uint64_t counters[SHCA_C_COUNT])
{
	total(f, hca, counters);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++) {
		uint64_t base = atomic_load_explicit(&hca->counters_base[i], memory_order_relaxed);

		/* A QP that goes meanwhile may be missed, or be counted twice, for this once. */
		counters[i] = counters[i] > base ? counters[i] - base : 0;
	}
}

void shca_counters_reset(const struct shca_fabric *f, struct shca_hca *hca)
{
	uint64_t now[SHCA_C_COUNT];

	total(f, hca, now);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++)
		atomic_store_explicit(&hca->counters_base[i], now[i], memory_order_relaxed);
}

void shca_counters_fold(struct shca_hca *hca, struct shca_qp_entry *qp)
{
	for (unsigned i = 0; i < SHCA_C_PER_QP; i++)
		shca_count(hca, i, atomic_exchange(&qp->counters[i], 0));
	shca_count(hca, SHCA_C_RX_PACKETS, atomic_exchange(&qp->rx_packets, 0));
	shca_count(hca, SHCA_C_RX_BYTES, atomic_exchange(&qp->rx_bytes, 0));
}
