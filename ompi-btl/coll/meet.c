/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier of R. Gupta, V. Tipparaju, J. Nieplocha, D. Panda ("Efficient Barrier using Remote
 * Memory Operations on VIA-Based Clusters", 2002): the processes of a node meet at flags in shared
 * memory, their leaders write the barrier's number into one another's memory. A small reduction
 * goes the same way and takes its data along.
 *
 * A number only grows, and who waits for number n goes on at n or more: a fast process may be one
 * operation ahead, but not two, since it needs our word for the next one. So two messages in each
 * slot suffice, and one place for each process's data on a node: who is in operation n has read
 * all of n - 1.
 */
#include "coll.h"

static bool reached(const struct tupleq_line *line, uint64_t number)
{
	/* acquire: what was done before it was written is seen after this. The numbers wrap. */
	uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

	return (int64_t)(word - number) >= 0;
}

static void announce(struct tupleq_line *line, uint64_t number)
{
	atomic_store_explicit(&line->word, number, memory_order_release);
}

static const struct tupleq_path *path_of(const struct tupleq_group *g, const struct tupleq_op *op)
{
	return op->data ? &g->reduction : &g->barrier;
}

/* ---- data ---- */

/* What comes from the same node is reduced by its leader alone; what comes from another node by
 * both, in the same order, so that all have the same bits. */
static void reduce(struct tupleq_group *g, const struct tupleq_data *d, bool other_first)
{
	void *first = other_first ? g->other : g->sum, *second = other_first ? g->sum : g->other;

	series_reduce(d->comm, first, second, d->count, d->type, d->op);
	g->other = first;
	g->sum = second;
}

static void reduce_local(struct tupleq_group *g, const struct tupleq_data *d)
{
	memcpy(g->sum, d->in, d->len);
	for (int i = 1; i < g->shape.nlocal; i++) {
		memcpy(g->other, tupleq_brought(g->segment, &g->shape, i), d->len);
		reduce(g, d, false);
	}
}

/* ---- between nodes ---- */

static int write_slot(struct tupleq_group *g, const struct tupleq_step *step,
		      const struct tupleq_op *op)
{
	const struct tupleq_node *node = &g->nodes[step->to];
	size_t offset;

	if (!op->data) {
		offset = offsetof(struct tupleq_segment, slots) +
			 (size_t)step->to_slot * sizeof(struct tupleq_line);
		return tq_put(node->leader, &op->number, sizeof(op->number), node->addr + offset,
			      node->key);
	}
	offset = tupleq_message_offset(&g->shape, tupleq_doubling_slot(g->nnodes, step->to_slot),
				       op->number);
	tupleq_words_put(g->words, g->sum, op->data->len);
	return tq_put(node->leader, g->words, tupleq_words_size(op->data->len), node->addr + offset,
		      node->key);
}

static bool slot_written(struct tupleq_group *g, const struct tupleq_step *step,
			 struct tupleq_op *op)
{
	uint64_t *words;

	if (!op->data)
		return reached(&g->segment->slots[step->from_slot], op->number);
	words = tupleq_message(g->segment, &g->shape,
			       tupleq_doubling_slot(g->nnodes, step->from_slot), op->number);
	if (!tupleq_words_here(words, op->data->len, &op->got))
		return false;
	op->got = 0;
	tupleq_words_take(words, g->other, op->data->len);
	if (step->from_slot == TUPLEQ_SLOT_EXIT)
		memcpy(g->sum, g->other, op->data->len);
	else
		reduce(g, op->data, step->from < g->node);
	return true;
}

static int meet_nodes(struct tupleq_group *g, struct tupleq_op *op)
{
	const struct tupleq_path *path = path_of(g, op);

	for (; op->at < path->nsteps; op->at++, op->wrote = false) {
		const struct tupleq_step *step = &path->steps[op->at];
		int rc;

		if (!op->wrote && step->to >= 0) {
			rc = write_slot(g, step, op);
			if (rc)
				return rc;
		}
		op->wrote = true;
		if (step->from >= 0 && !slot_written(g, step, op))
			return 0;
	}
	return 1;
}

/* ---- on a node ---- */

static void enter(struct tupleq_group *g, const struct tupleq_op *op)
{
	if (op->data)
		memcpy(tupleq_brought(g->segment, &g->shape, g->me), op->data->in, op->data->len);
	announce(tupleq_entered(g->segment, &g->shape, g->me), op->number);
}

static int leave(struct tupleq_group *g, const struct tupleq_op *op)
{
	if (!reached(&g->segment->release, op->number))
		return 0;
	if (op->data)
		memcpy(op->data->out, tupleq_result(g->segment, &g->shape), op->data->len);
	return 1;
}

static void release(struct tupleq_group *g, const struct tupleq_op *op)
{
	if (op->data) {
		memcpy(op->data->out, g->sum, op->data->len);
		memcpy(tupleq_result(g->segment, &g->shape), g->sum, op->data->len);
	}
	announce(&g->segment->release, op->number);
}

int tupleq_meet(struct tupleq_coll *c, struct tupleq_op *op)
{
	struct tupleq_group *g = &c->group;
	int rc;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		if (g->me) {
			enter(g, op);
			op->phase = TUPLEQ_LEAVE;
			return leave(g, op);
		}
		for (; op->at < g->shape.nlocal; op->at++) {
			if (op->at &&
			    !reached(tupleq_entered(g->segment, &g->shape, op->at), op->number))
				return 0;
		}
		if (op->data)
			reduce_local(g, op->data);
		op->phase = TUPLEQ_NETWORK;
		op->at = 0;
		/* fall through */
	case TUPLEQ_NETWORK:
		rc = meet_nodes(g, op);
		if (rc > 0)
			release(g, op);
		return rc;
	case TUPLEQ_LEAVE:
		return leave(g, op);
	}
	return 0;
}

struct tq_peer *tupleq_awaits(const struct tupleq_coll *c, const struct tupleq_op *op)
{
	const struct tupleq_group *g = &c->group;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		return g->local[op->at];
	case TUPLEQ_NETWORK:
		return g->nodes[path_of(g, op)->steps[op->at].from].leader;
	case TUPLEQ_LEAVE:
		break;
	}
	return g->local[0];
}
