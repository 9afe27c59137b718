/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The phases of an operation: to the leader, between nodes, and back.
 *
 * The barrier is that of R. Gupta, V. Tipparaju, J. Nieplocha, D. Panda ("Efficient Barrier using
 * Remote Memory Operations on VIA-Based Clusters", 2002): the processes of a node set flags in
 * shared memory, and their leaders write the barrier's number into one another's memory. The
 * leaders of a small MPI_Allreduce exchange data in groups. MPI_Bcast and MPI_Reduce use a tree of
 * the nodes.
 *
 * Numbers only grow: a process that waits for number n goes on at n or more. WRITES.md explains why
 * no process overwrites a buffer that hasn't been read.
 *
 * Each number, and each word of data, comes with a stamp, from which a process notices that another
 * one is in a different operation.
 */
#include "coll.h"

#include <errno.h>

static bool has_reached(const _Atomic uint64_t *word, uint64_t number)
{
	/* acquire: this process sees all that the writer did before. The numbers may wrap. */
	return (int64_t)(atomic_load_explicit(word, memory_order_acquire) - number) >= 0;
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
	op->is_packed = false;
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
	return op->data->kind == TUPLEQ_ALLREDUCE ? &group->reduction : &group->tree;
}

/* ---- data ---- */

static void swap(void **one, void **other)
{
	void *first = *one;

	*one = *other;
	*other = first;
}

/* Computes *result op *operand in the memory of the operand, and exchanges the two. */
static void reduce(const struct mca_coll_tupleq_data *data, void **result, void **operand)
{
	series_reduce(data->comm, *result, *operand, data->count, data->type, data->op);
	swap(result, operand);
}

/* Adds the accumulator to what has come from nodes before this one. */
static void add_before(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op)
{
	if (!op->has_before)
		return;
	op->has_before = false;
	reduce(op->data, &group->before, &group->accumulator);
	swap(&group->before, &group->accumulator);
}

/*
 * Adds an operand that has come from another node. The nodes of an exchange reduce its operands in
 * the same order, that of the nodes, so that all ranks get the same bits: the operands of nodes
 * before this one are collected apart, and this node's comes after them.
 */
static void add_incoming(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op,
			 bool is_before)
{
	op->is_packed = false;
	if (!is_before) {
		add_before(group, op);
		reduce(op->data, &group->accumulator, &group->incoming);
	} else if (op->has_before) {
		reduce(op->data, &group->before, &group->incoming);
	} else {
		op->has_before = true;
		swap(&group->before, &group->incoming);
	}
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
		reduce(data, &group->accumulator, &group->incoming);
	}
}

/* Finds the steps of a tree. A broadcast's depend on the root's length. */
static void find_tree(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	int root = group->locations[op->data->root].node, radix = group->radix;

	if (op->data->kind == TUPLEQ_REDUCE) {
		mca_coll_tupleq_tree_up(group->nnodes, radix, group->node, root, &group->tree);
		return;
	}
	if (op->len <= TUPLEQ_BCAST_SHORT)
		radix = group->short_radix;
	mca_coll_tupleq_tree_down(group->nnodes, radix, group->node, root, &group->tree);
}

/* Collects the input of the node, and finds the steps of a tree. */
static void collect_inputs(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	if (data->kind != TUPLEQ_ALLREDUCE)
		find_tree(group, op);
	if (data->kind != TUPLEQ_BCAST)
		reduce_local(group, op);
	else if (data->in)
		memcpy(group->accumulator, data->in, data->len);
	else if (group->locations[data->root].node == group->node)
		memcpy(group->accumulator,
		       mca_coll_tupleq_result(group->segment, &group->shape, op->buffer), op->len);
}

/* ---- between nodes ---- */

static int write_slot(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_step *step,
		      struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_node *node = &group->nodes[step->node];
	size_t offset;

	if (!op->data) {
		offset = offsetof(struct mca_coll_tupleq_segment, slots) +
			 step->slot * sizeof(op->number);
		return tq_put(node->leader, &op->number, sizeof(op->number), node->addr + offset,
			      node->key);
	}
	if (!op->is_packed) {
		add_before(group, op);
		mca_coll_tupleq_words_put(group->outgoing, group->accumulator, op->len, op->stamp);
		op->is_packed = true;
	}
	offset = mca_coll_tupleq_message_offset(&group->shape, step->slot, op->buffer);
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
		return has_reached(&group->segment->slots[step->slot], op->number);
	words = mca_coll_tupleq_message(group->segment, &group->shape, step->slot, op->buffer);
	stamp = mca_coll_tupleq_words_stamp(words);
	if (!stamp)
		return 0;
	rc = compare(group, op, stamp);
	if (OPAL_UNLIKELY(rc))
		return rc;
	if (OPAL_UNLIKELY(op->differs && op->data->kind == TUPLEQ_BCAST))
		find_tree(group, op);
	len = mca_coll_tupleq_stamp_bytes(stamp);
	if (!mca_coll_tupleq_words_poll(words, len, &op->words_arrived))
		return 0;
	op->words_arrived = 0;
	if (step->is_result) {
		mca_coll_tupleq_words_take(words, group->accumulator, len);
		return 1;
	}
	mca_coll_tupleq_words_take(words, group->incoming, len);
	if (OPAL_LIKELY(!op->differs))
		add_incoming(group, op, step->node < group->node);
	return 1;
}

static int run_steps(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_path *path = path_of(group, op);

	for (; op->awaits < path->nsteps; op->awaits++) {
		const struct mca_coll_tupleq_step *step = &path->steps[op->awaits];
		int rc;

		if (step->is_write) {
			rc = write_slot(group, step, op);
			if (rc)
				return rc == -EAGAIN ? 0 : rc;
		} else {
			rc = read_slot(group, step, op);
			if (rc <= 0)
				return rc;
		}
	}
	if (op->data)
		add_before(group, op);
	return 1;
}

/* ---- on a node ---- */

static void enter(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	if (data && data->in)
		memcpy(data->kind == TUPLEQ_BCAST
			       ? mca_coll_tupleq_result(group->segment, &group->shape, op->buffer)
			       : mca_coll_tupleq_input(group->segment, &group->shape,
						       group->local_rank, op->buffer),
		       data->in, data->len);
	announce(mca_coll_tupleq_entered(group->segment, &group->shape, group->local_rank), op);
}

static int leave(struct mca_coll_tupleq_group *group, struct mca_coll_tupleq_op *op)
{
	int rc;

	/* A process without a result needn't wait. */
	if (op->data && !op->data->out)
		return 1;
	if (!has_reached(&group->segment->release.word, op->number))
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

/* Returns true if the leader copies the result for a process of its node. */
static bool copies_result(const struct mca_coll_tupleq_group *group,
			  const struct mca_coll_tupleq_data *data)
{
	const struct mca_coll_tupleq_location *root = &group->locations[data->root];
	bool is_other = root->node == group->node && root->local;

	if (data->kind == TUPLEQ_REDUCE)
		return is_other;
	if (data->kind == TUPLEQ_BCAST && is_other)
		return false;
	return group->shape.nlocal > 1;
}

static void release(struct mca_coll_tupleq_group *group, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	if (data && data->out)
		memcpy(data->out, group->accumulator, result_bytes(op));
	if (data && copies_result(group, data))
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
			if (!has_reached(&line->word, op->number))
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

	switch (op->phase) {
	case TUPLEQ_ENTER:
		return group->local_peers[op->awaits];
	case TUPLEQ_NETWORK:
		/* A write that has to wait is the only thing that some steps wait for. */
		return group->nodes[path_of(group, op)->steps[op->awaits].node].leader;
	case TUPLEQ_LEAVE:
		break;
	}
	return group->local_peers[0];
}
