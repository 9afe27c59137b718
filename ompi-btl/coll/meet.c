/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier of R. Gupta, V. Tipparaju, J. Nieplocha, D. Panda ("Efficient Barrier using Remote
 * Memory Operations on VIA-Based Clusters", 2002): the processes of a node meet at flags in shared
 * memory, their leaders write the barrier's number into one another's memory. A small MPI_Allreduce
 * goes the same way and takes its data along; data from one process to all, or from all to one, go
 * along a tree of the nodes.
 *
 * A number only grows, and who waits for number n goes on at n or more. What keeps a fast process
 * from data that nobody has read yet: who has left a barrier or an MPI_Allreduce knows that all
 * have entered it, and so have ended, and read, all before it. These two themselves have two
 * places, used by turns, and the others a place each, until the next of these two; when all are
 * taken, progress.c puts a barrier in.
 *
 * With a number, or the data, comes a stamp, which says what the operation is: where programs are
 * wrong, processes are in different ones.
 */
#include "coll.h"

#include <errno.h>

static bool reached(const struct mca_coll_tupleq_line *line, uint64_t number)
{
	/* acquire: what was done before it was written is seen after this. The numbers wrap. */
	uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

	return (int64_t)(word - number) >= 0;
}

static void announce(struct mca_coll_tupleq_line *line, const struct mca_coll_tupleq_op *op)
{
	atomic_store_explicit(&line->stamps[op->place], op->stamp, memory_order_relaxed);
	atomic_store_explicit(&line->word, op->number, memory_order_release);
}

/*
 * Another process says of the operation other things than this one would. Where only the lengths
 * differ all stay in step: a broadcast goes on with the root's, of a reduction nothing but that
 * goes on. 0; -EPROTO: it is another operation.
 */
static int settle(const struct mca_coll_tupleq_group *g, struct mca_coll_tupleq_op *op,
		  uint32_t stamp)
{
	if (!op->data || !mca_coll_tupleq_stamps_fit(stamp, op->stamp) ||
	    mca_coll_tupleq_stamp_bytes(stamp) > g->shape.limit)
		return -EPROTO;
	op->differs = true;
	op->stamp = op->data->kind == TUPLEQ_BCAST ? stamp : mca_coll_tupleq_stamp_void(stamp);
	op->len = mca_coll_tupleq_stamp_bytes(op->stamp);
	return 0;
}

static inline int compare(const struct mca_coll_tupleq_group *g, struct mca_coll_tupleq_op *op,
			  uint32_t stamp)
{
	return OPAL_LIKELY(stamp == op->stamp) ? 0 : settle(g, op, stamp);
}

/* With that of who wrote the line. */
static inline int compare_line(const struct mca_coll_tupleq_group *g, struct mca_coll_tupleq_op *op,
			       const struct mca_coll_tupleq_line *line)
{
	return compare(g, op, atomic_load_explicit(&line->stamps[op->place], memory_order_relaxed));
}

/* Bytes of the result that this process takes. */
static size_t taken(const struct mca_coll_tupleq_op *op)
{
	return op->len < op->data->len ? op->len : op->data->len;
}

static const struct mca_coll_tupleq_path *path_of(const struct mca_coll_tupleq_group *g,
						  const struct mca_coll_tupleq_op *op)
{
	if (!op->data)
		return &g->barrier;
	return op->data->kind == TUPLEQ_ALLREDUCE ? &g->reduction : &op->data->path;
}

/* ---- data ---- */

/* What comes from the same node is reduced by its leader alone; what comes from another node by
 * both, in the same order, so that all have the same bits. */
static void reduce(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_data *d,
		   bool other_first)
{
	void *first = other_first ? g->other : g->sum, *second = other_first ? g->sum : g->other;

	series_reduce(d->comm, first, second, d->count, d->type, d->op);
	g->other = first;
	g->sum = second;
}

static void reduce_local(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *d = op->data;

	if (OPAL_UNLIKELY(op->differs))
		return;
	memcpy(g->sum, d->in, d->len);
	for (int i = 1; i < g->shape.nlocal; i++) {
		memcpy(g->other, mca_coll_tupleq_brought(g->segment, &g->shape, i, op->place),
		       d->len);
		reduce(g, d, false);
	}
}

/* What the node has to give, and to whom. */
static void gather(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_data *d = op->data;
	const struct mca_coll_tupleq_where *root;

	if (d->kind == TUPLEQ_ALLREDUCE) {
		reduce_local(g, op);
		return;
	}
	root = &g->where[d->root];
	if (d->kind == TUPLEQ_REDUCE) {
		d->path.nsteps =
			mca_coll_tupleq_tree_up(g->nnodes, g->node, root->node, d->path.steps);
		reduce_local(g, op);
		return;
	}
	d->path.nsteps = mca_coll_tupleq_tree_down(g->nnodes, g->node, root->node, d->path.steps);
	if (d->in)
		memcpy(g->sum, d->in, d->len);
	else if (root->node == g->node)
		memcpy(g->sum,
		       mca_coll_tupleq_brought(g->segment, &g->shape, root->local, op->place),
		       op->len);
}

/* ---- between nodes ---- */

/* Where an operation's data lie in a slot. */
static int slot_of(const struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_op *op,
		   int slot)
{
	return op->data->kind == TUPLEQ_ALLREDUCE ? mca_coll_tupleq_doubling_slot(g->nnodes, slot)
						  : slot;
}

static int write_slot(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_step *step,
		      const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_node *node = &g->nodes[step->to];
	size_t offset;

	if (!op->data) {
		offset = offsetof(struct mca_coll_tupleq_segment, slots) +
			 (size_t)step->to_slot * sizeof(struct mca_coll_tupleq_line);
		return tq_put(node->leader, &op->number, sizeof(op->number), node->addr + offset,
			      node->key);
	}
	offset =
		mca_coll_tupleq_message_offset(&g->shape, slot_of(g, op, step->to_slot), op->place);
	mca_coll_tupleq_words_put(g->words, g->sum, op->len, op->stamp);
	return tq_put(node->leader, g->words, mca_coll_tupleq_words_size(op->len),
		      node->addr + offset, node->key);
}

/* 1: it is; 0: not yet; -EPROTO. */
static int slot_written(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_step *step,
			struct mca_coll_tupleq_op *op)
{
	uint64_t *words;
	uint32_t stamp;
	size_t len;
	int rc;

	if (!op->data)
		return reached(&g->segment->slots[step->from_slot], op->number);
	words = mca_coll_tupleq_message(g->segment, &g->shape, slot_of(g, op, step->from_slot),
					op->place);
	stamp = mca_coll_tupleq_words_stamp(words);
	if (!stamp)
		return 0;
	rc = compare(g, op, stamp);
	if (OPAL_UNLIKELY(rc))
		return rc;
	len = mca_coll_tupleq_stamp_bytes(stamp);
	if (!mca_coll_tupleq_words_here(words, len, &op->got))
		return 0;
	op->got = 0;
	if (op->data->kind == TUPLEQ_BCAST || step->from_slot == TUPLEQ_SLOT_EXIT) {
		mca_coll_tupleq_words_take(words, g->sum, len);
		return 1;
	}
	mca_coll_tupleq_words_take(words, g->other, len);
	if (OPAL_LIKELY(!op->differs))
		reduce(g, op->data, step->from < g->node);
	return 1;
}

static int meet_nodes(struct mca_coll_tupleq_group *g, struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_path *path = path_of(g, op);

	for (; op->at < path->nsteps; op->at++, op->wrote = false) {
		const struct mca_coll_tupleq_step *step = &path->steps[op->at];
		int rc;

		if (!op->wrote && step->to >= 0) {
			rc = write_slot(g, step, op);
			if (rc)
				return rc == -EAGAIN ? 0 : rc;
		}
		op->wrote = true;
		if (step->from >= 0) {
			rc = slot_written(g, step, op);
			if (rc <= 0)
				return rc;
		}
	}
	return 1;
}

/* ---- on a node ---- */

static void enter(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_op *op)
{
	if (op->data && op->data->in)
		memcpy(mca_coll_tupleq_brought(g->segment, &g->shape, g->me, op->place),
		       op->data->in, op->data->len);
	announce(mca_coll_tupleq_entered(g->segment, &g->shape, g->me), op);
}

static int leave(struct mca_coll_tupleq_group *g, struct mca_coll_tupleq_op *op)
{
	int rc;

	/* There is nothing to come. */
	if (op->data && !op->data->out)
		return 1;
	if (!reached(&g->segment->release, op->number))
		return 0;
	rc = compare_line(g, op, &g->segment->release);
	if (OPAL_UNLIKELY(rc))
		return rc;
	if (op->data)
		memcpy(op->data->out, mca_coll_tupleq_result(g->segment, &g->shape, op->place),
		       taken(op));
	return 1;
}

/* Is there a process besides the leader that gets the result? */
static bool others_get(const struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_data *d)
{
	if (d->kind == TUPLEQ_REDUCE)
		return g->where[d->root].node == g->node && g->where[d->root].local;
	return g->shape.nlocal > 1;
}

static void release(struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *d = op->data;

	if (d && d->out)
		memcpy(d->out, g->sum, taken(op));
	if (d && others_get(g, d))
		memcpy(mca_coll_tupleq_result(g->segment, &g->shape, op->place), g->sum, op->len);
	announce(&g->segment->release, op);
}

/* Does the leader wait until this process has entered? */
static bool is_needed(const struct mca_coll_tupleq_group *g, const struct mca_coll_tupleq_data *d,
		      int process)
{
	if (!process)
		return false;
	if (!d || d->kind != TUPLEQ_BCAST)
		return true;
	return g->where[d->root].node == g->node && g->where[d->root].local == process;
}

int mca_coll_tupleq_meet(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_group *g = &c->group;
	int rc;

	switch (op->phase) {
	case TUPLEQ_ENTER:
		if (g->me) {
			enter(g, op);
			op->phase = TUPLEQ_LEAVE;
			return leave(g, op);
		}
		for (; op->at < g->shape.nlocal; op->at++) {
			const struct mca_coll_tupleq_line *line;

			if (!is_needed(g, op->data, op->at))
				continue;
			line = mca_coll_tupleq_entered(g->segment, &g->shape, op->at);
			if (!reached(line, op->number))
				return 0;
			rc = compare_line(g, op, line);
			if (OPAL_UNLIKELY(rc))
				return rc;
		}
		if (op->data)
			gather(g, op);
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

struct tq_peer *mca_coll_tupleq_awaits(const struct mca_coll_tupleq_module *c,
				       const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_group *g = &c->group;

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
