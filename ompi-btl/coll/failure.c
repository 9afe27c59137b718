/* SPDX-License-Identifier: BSD-3-Clause */
#include "failure.h"

#include <errno.h>

#include "pml/say.h"

/* Informs the processes of the node and the other leaders, as far as the set-up has found them: a
 * process may be waiting for one that is alive, but that waits for the failed one itself. */
void mca_coll_tupleq_fail(struct mca_coll_tupleq_module *module, int why)
{
	const struct mca_coll_tupleq_group *group = &module->group;
	uint64_t word;

	module->failed = why;
	if (group->segment)
		atomic_store_explicit(&group->segment->failed, (uint64_t)-why,
				      memory_order_release);
	for (int i = 0; group->nodes && i < group->nnodes; i++) {
		struct tq_peer *leader = group->nodes[i].leader;
		const struct mca_coll_tupleq_notice *notice = &group->nodes[i].notice;

		word = mca_coll_tupleq_notice_failed_word(notice, why == -EPROTO);
		if (i != group->node && leader && !tq_peer_error(leader))
			tq_put(leader, &word, sizeof(word), notice->addr, notice->key);
	}
}

/* Reports that another process has another operation under `number`. */
static void report(struct mca_coll_tupleq_module *module, uint64_t number)
{
	static const char *const names[] = {
		[TUPLEQ_BARRIER] = "MPI_Barrier",
		[TUPLEQ_ALLREDUCE] = "MPI_Allreduce",
		[TUPLEQ_BCAST] = "MPI_Bcast",
		[TUPLEQ_REDUCE] = "MPI_Reduce",
	};
	enum mca_coll_tupleq_kind kind;
	char more[64] = "", text[400];
	uint64_t signature;

	if (!mca_coll_tupleq_call_read(&module->group.calls[number % TUPLEQ_CALLS], number,
				       &signature))
		return;
	kind = mca_coll_tupleq_call_kind(signature);
	if (kind >= TUPLEQ_BCAST)
		snprintf(more, sizeof(more), " of %u bytes, root %d",
			 mca_coll_tupleq_call_bytes(signature),
			 mca_coll_tupleq_call_root(signature));
	else if (kind == TUPLEQ_ALLREDUCE)
		snprintf(more, sizeof(more), " of %u bytes", mca_coll_tupleq_call_bytes(signature));
	snprintf(text, sizeof(text),
		 "rank %d is in %s%s, and another rank is in another operation, or in one with "
		 "another root or length. From here on MPI_Barrier, MPI_Bcast, MPI_Reduce and "
		 "MPI_Allreduce fail on this communicator.",
		 ompi_comm_rank(module->comm), names[kind], more);
	mca_pml_tupleq_say(0, 0, "coll tupleq", module->comm->c_name, text);
}

void mca_coll_tupleq_fail_mismatched(struct mca_coll_tupleq_module *module, uint64_t number)
{
	report(module, number);
	mca_coll_tupleq_fail(module, -EPROTO);
}

/* Forwards the failure once, because the process that has reported it may fail before it has
 * informed all. */
bool mca_coll_tupleq_poll_failure(struct mca_coll_tupleq_module *module)
{
	uint64_t word = atomic_load_explicit(&module->group.segment->failed, memory_order_relaxed);
	bool mismatched = false;

	if (word)
		mca_coll_tupleq_fail(module, -(int)word);
	else if (mca_coll_tupleq_notice_has_failed(&module->group.notice, &mismatched))
		mca_coll_tupleq_fail(module, mismatched ? -EPROTO : -EIO);
	return module->failed;
}
