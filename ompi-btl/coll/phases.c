/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The phases of an operation: to the leader, between nodes, and back.
 *
 * The barrier is that of R. Gupta, V. Tipparaju, J. Nieplocha, D. Panda ("Efficient Barrier using
 * Remote Memory Operations on VIA-Based Clusters", 2002): the processes of a node set flags in
 * shared memory, and their leaders write the barrier's number into one another's memory. A small
 * MPI_Allreduce takes the same path together with its data. MPI_Bcast and MPI_Reduce use a tree of
 * the nodes.
 *
 * Numbers only grow: a process that waits for number n goes on at n or more. README.md explains why
 * no process overwrites a buffer that hasn't been read.
 *
 * Each number, and each word of data, comes with a stamp, from which a process notices that another
 * one is in a different operation.
 */
#include "coll.h"

#include <errno.h>

static bool has_reached(const struct mca_coll_tupleq_line *line, uint64_t number)
{
	/* acquire: this process sees all that the writer did before. The numbers may wrap. */
	uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

	return (int64_t)(word - number) >= 0;
}

static void announce(struct mca_coll_tupleq_line *line, const struct mca_coll_tupleq_op *op)
{
	atomic_store_explicit(&line->stamps[op->buffer], op->stamp, memory_order_relaxed);
	atomic_store_explicit(&line->word, op->number, memory_order_release);
}

/*
 * Handles a stamp that differs from this process's. If only the lengths differ, all processes stay
 * in step: a broadcast goes on with the root's length, a reduction without data. Returns 0, or
 * -EPROTO if the stamp is that of another operation.
 */
static int accept_length(const struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op,
			 uint32_t stamp)
{
	if (!op->data || !mca_coll_tupleq_stamps_fit(stamp, op->stamp) ||
	    mca_coll_tupleq_stamp_bytes(stamp) > group->shape.limit)
		return -EPROTO;
	op->differs = true;
	op->stamp = op->data->kind == TUPLEQ_BCAST ? stamp : mca_coll_tupleq_stamp_void(stamp);
	op->len = mca_coll_tupleq_stamp_bytes(op->stamp);
	return 0;
}

static inline int compare(const struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op,
			  uint32_t stamp)
{
	return OPAL_LIKELY(stamp == op->stamp) ? 0 : accept_length(group, op, stamp);
}

/* Compares the operation with that of the process that wrote the line. */
static inline int compare_line(const struct mca_coll_tupleq_group *group,
			       struct mca_coll_tupleq_op *op,
			       const struct mca_coll_tupleq_line *line)
{
	return compare(group, op,
		       atomic_load_explicit(&line->stamps[op->buffer], memory_order_relaxed));
}

/* Returns how many bytes of the result this process takes. */
static size_t result_bytes(const struct mca_coll_tupleq_op *op)
{
	return op->len < op->data->len ? op->len : op->data->len;
}

static const struct mca_coll_tupleq_path *path_of(const struct mca_coll_tupleq_group *group,
						  const struct mca_coll_tupleq_op *op)
{
	if (!op->data)
		return &group->barrier;
	return op->data->kind == TUPLEQ_ALLREDUCE ? &group->reduction : &op->data->path;
}

/* ---- data ---- */

/* Reduces the incoming operand into the accumulator. Both nodes of an exchange reduce in the same
 * order, so that all ranks get the same bits. */
static void reduce(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_data *data,
		   bool other_first)
{
	void *first = other_first ? group->incoming : group->accumulator,
	     *second = other_first ? group->accumulator : group->incoming;

	series_reduce(data->comm, first, second, data->count, data->type, data->op);
	group->incoming = first;
	group->accumulator = second;
}

static void reduce_local(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	if (OPAL_UNLIKELY(op->differs))
		return;
	memcpy(group->accumulator, data->in, data->len);
	for (int i = 1; i < group->shape.nlocal; i++) {
		memcpy(group->incoming,
		       mca_coll_tupleq_input(group->segment, &group->shape, i, op->buffer),
		       data->len);
		reduce(group, data, false);
	}
}

/* Collects the input of the node, and finds the steps of a tree. */
static void collect_inputs(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_data *data = op->data;
	const struct mca_coll_tupleq_location *root;

	if (data->kind == TUPLEQ_ALLREDUCE) {
		reduce_local(group, op);
		return;
	}
	root = &group->locations[data->root];
	if (data->kind == TUPLEQ_REDUCE) {
		data->path.nsteps = mca_coll_tupleq_tree_up(group->nnodes, group->node, root->node,
							    data->path.steps);
		reduce_local(group, op);
		return;
	}
	data->path.nsteps =
		mca_coll_tupleq_tree_down(group->nnodes, group->node, root->node, data->path.steps);
	if (data->in)
		memcpy(group->accumulator, data->in, data->len);
	else if (root->node == group->node)
		memcpy(group->accumulator,
		       mca_coll_tupleq_input(group->segment, &group->shape, root->local,
					     op->buffer),
		       op->len);
}

/* ---- between nodes ---- */

/* Returns the index of a slot among those that the operation's kind uses. */
static int slot_of(const struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op,
		   int slot)
{
	return op->data->kind == TUPLEQ_ALLREDUCE
		       ? mca_coll_tupleq_doubling_slot(group->nnodes, slot)
		       : slot;
}

static int write_slot(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_step *step,
		      const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_node *node = &group->nodes[step->to];
	size_t offset;

	if (!op->data) {
		offset = offsetof(struct mca_coll_tupleq_segment, slots) +
			 (size_t)step->to_slot * sizeof(struct mca_coll_tupleq_line);
		return tq_put(node->leader, &op->number, sizeof(op->number), node->addr + offset,
			      node->key);
	}
	offset = mca_coll_tupleq_message_offset(&group->shape, slot_of(group, op, step->to_slot),
						op->buffer);
	mca_coll_tupleq_words_put(group->outgoing, group->accumulator, op->len, op->stamp);
	return tq_put(node->leader, group->outgoing, mca_coll_tupleq_words_size(op->len),
		      node->addr + offset, node->key);
}

/* Takes the data of a step. Returns 1 if they have arrived, 0 if they haven't yet, or -EPROTO. */
static int read_slot(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_step *step,
		     struct mca_coll_tupleq_op *op)
{
	uint64_t *words;
	uint32_t stamp;
	size_t len;
	int rc;

	if (!op->data)
		return has_reached(&group->segment->slots[step->from_slot], op->number);
	words = mca_coll_tupleq_message(group->segment, &group->shape,
					slot_of(group, op, step->from_slot), op->buffer);
	stamp = mca_coll_tupleq_words_stamp(words);
	if (!stamp)
		return 0;
	rc = compare(group, op, stamp);
	if (OPAL_UNLIKELY(rc))
		return rc;
	len = mca_coll_tupleq_stamp_bytes(stamp);
	if (!mca_coll_tupleq_words_poll(words, len, &op->words_arrived))
		return 0;
	op->words_arrived = 0;
	if (op->data->kind == TUPLEQ_BCAST || step->from_slot == TUPLEQ_SLOT_EXIT) {
		mca_coll_tupleq_words_take(words, group->accumulator, len);
		return 1;
	}
	mca_coll_tupleq_words_take(words, group->incoming, len);
	if (OPAL_LIKELY(!op->differs))
		reduce(group, op->data, step->from < group->node);
	return 1;
}

static int run_steps(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_path *path = path_of(group, op);

	for (; op->awaits < path->nsteps; op->awaits++, op->has_written = false) {
		const struct mca_coll_tupleq_step *step = &path->steps[op->awaits];
		int rc;

		if (!op->has_written && step->to >= 0) {
			rc = write_slot(group, step, op);
			if (rc)
				return rc == -EAGAIN ? 0 : rc;
		}
		op->has_written = true;
		if (step->from >= 0) {
			rc = read_slot(group, step, op);
			if (rc <= 0)
				return rc;
		}
	}
	return 1;
}

/* ---- on a node ---- */

static void enter(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	if (op->data && op->data->in)
		memcpy(mca_coll_tupleq_input(group->segment, &group->shape, group->local_rank,
					     op->buffer),
		       op->data->in, op->data->len);
	announce(mca_coll_tupleq_entered(group->segment, &group->shape, group->local_rank), op);
}

static int leave(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op)
{
	int rc;

	/* A process without a result needn't wait. */
	if (op->data && !op->data->out)
		return 1;
	if (!has_reached(&group->segment->release, op->number))
		return 0;
	rc = compare_line(group, op, &group->segment->release);
	if (OPAL_UNLIKELY(rc))
		return rc;
	if (op->data)
		memcpy(op->data->out,
		       mca_coll_tupleq_result(group->segment, &group->shape, op->buffer),
		       result_bytes(op));
	return 1;
}

/* Returns true if a process besides the leader gets the result. */
static bool others_get_result(const struct mca_coll_tupleq_group *group,
			      const struct mca_coll_tupleq_data *data)
{
	if (data->kind == TUPLEQ_REDUCE)
		return group->locations[data->root].node == group->node &&
		       group->locations[data->root].local;
	return group->shape.nlocal > 1;
}

static void release(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	if (data && data->out)
		memcpy(data->out, group->accumulator, result_bytes(op));
	if (data && others_get_result(group, data))
		memcpy(mca_coll_tupleq_result(group->segment, &group->shape, op->buffer),
		       group->accumulator, op->len);
	announce(&group->segment->release, op);
}

/* Returns true if the leader waits until this process has entered. */
static bool is_awaited(const struct mca_coll_tupleq_group *group,
		       const struct mca_coll_tupleq_data *data, int process)
{
	if (!process)
		return false;
	if (!data || data->kind != TUPLEQ_BCAST)
		return true;
	return group->locations[data->root].node == group->node &&
	       group->locations[data->root].local == process;
}

int mca_coll_tupleq_op_poll(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_group *group = &module->group;
	int rc;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		if (group->local_rank) {
			enter(group, op);
			op->phase = TUPLEQ_LEAVE;
			return leave(group, op);
		}
		for (; op->awaits < group->shape.nlocal; op->awaits++) {
			const struct mca_coll_tupleq_line *line;

			if (!is_awaited(group, op->data, op->awaits))
				continue;
			line = mca_coll_tupleq_entered(group->segment, &group->shape, op->awaits);
			if (!has_reached(line, op->number))
				return 0;
			rc = compare_line(group, op, line);
			if (OPAL_UNLIKELY(rc))
				return rc;
		}
		if (op->data)
			collect_inputs(group, op);
		op->phase = TUPLEQ_NETWORK;
		op->awaits = 0;
		/* fall through */
	case TUPLEQ_NETWORK:
		rc = run_steps(group, op);
		if (rc > 0)
			release(group, op);
		return rc;
	case TUPLEQ_LEAVE:
		return leave(group, op);
	}
	return 0;
}

struct tq_peer *mca_coll_tupleq_op_awaited(const struct mca_coll_tupleq_module *module,
					   const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_group *group = &module->group;
	const struct mca_coll_tupleq_step *step;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		return group->local_peers[op->awaits];
	case TUPLEQ_NETWORK:
		/* A write that has to wait is the only thing that some steps wait for. */
		step = &path_of(group, op)->steps[op->awaits];
		return group->nodes[op->has_written ? step->from : step->to].leader;
	case TUPLEQ_LEAVE:
		break;
	}
	return group->local_peers[0];
}
