/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set-up of a communicator, at its first operation: who is on which node, memory of each node,
 * its address to the leaders of the others; and all processes agree on whether it has come about.
 * That takes three exchanges of messages, which opal_progress() takes further, too: an operation
 * that doesn't wait is there before the memory is.
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>

#define ADDRESS_MAX 64

/* What each process tells all others first. */
struct card {
	uint8_t address[ADDRESS_MAX];
	uint32_t len;   /* 0: it has no endpoint */
	uint32_t limit; /* bytes of data */
};

/* And then; 0 but for leaders. */
struct offer {
	uint64_t name; /* of the segment */
	uint64_t addr;
	struct mca_coll_tupleq_mark mark;
	uint32_t key;
	uint32_t ok; /* of all */
};

/* A process, sorted by nodes, and by ranks in each. */
struct place {
	struct tq_node_id node;
	int rank;
};

struct mca_coll_tupleq_setup {
	struct mca_coll_tupleq_module *c;
	struct tq_ep *ep;
	int size, rank;
	enum { CARDS, OFFERS, VERDICTS, EXCHANGES } stage;
	struct mca_coll_tupleq_exchange exchange[EXCHANGES];
	struct place *places;
	int *leaders;        /* ranks, ascending */
	int leader;          /* of this process's node */
	const char *problem; /* of this process; NULL: none */
};

_Static_assert(EXCHANGES <= SERIES_SETUP_TAGS, "each exchange has a tag");

static int tag_of(int stage)
{
	return SERIES_SETUP_TAG - stage;
}

static int share(struct mca_coll_tupleq_setup *s, const void *mine, size_t bytes)
{
	return mca_coll_tupleq_exchange_start(&s->exchange[s->stage], s->c->comm,
					      tag_of((int)s->stage), mine, bytes);
}

static const struct card *card_of(const struct mca_coll_tupleq_setup *s, int rank)
{
	return mca_coll_tupleq_exchange_of(&s->exchange[CARDS], rank);
}

static const struct offer *offer_of(const struct mca_coll_tupleq_setup *s, int rank)
{
	return mca_coll_tupleq_exchange_of(&s->exchange[OFFERS], rank);
}

static int share_cards(struct mca_coll_tupleq_setup *s)
{
	struct card mine = {.limit = (uint32_t)mca_coll_tupleq.limit};
	const void *address = NULL;
	size_t len = 0;

	s->ep = tq_find(series_job_key());
	if (s->ep)
		address = tq_address(s->ep, &len);
	if (!address)
		s->problem = "this process has no endpoint of pml tupleq's";
	else if (len > sizeof(mine.address))
		s->problem = "libtupleq is of another version";
	else
		memcpy(mine.address, address, mine.len = (uint32_t)len);
	return share(s, &mine, sizeof(mine));
}

static bool all_have_cards(const struct mca_coll_tupleq_setup *s)
{
	for (int i = 0; i < s->size; i++) {
		if (!card_of(s, i)->len)
			return false;
	}
	return true;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = memcmp(&x->node, &y->node, sizeof(x->node));

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int compare_ranks(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static struct tq_peer *find_peer(struct mca_coll_tupleq_setup *s, int rank)
{
	const struct card *card = card_of(s, rank);
	struct tq_peer *peer = tq_peer_find(s->ep, card->address, card->len);

	if (!peer)
		s->problem = "a process isn't known to pml tupleq";
	return peer;
}

/* The group's processes of this node, and the leaders. */
static void find_places(struct mca_coll_tupleq_setup *s)
{
	struct mca_coll_tupleq_group *g = &s->c->group;
	int i, mine = 0;

	for (i = 0; i < s->size; i++) {
		const struct card *card = card_of(s, i);

		s->places[i].rank = i;
		if (tq_address_node(card->address, card->len, &s->places[i].node))
			s->problem = "a process uses another version of TupleQ";
	}
	qsort(s->places, (size_t)s->size, sizeof(*s->places), compare_places);
	for (i = 0; i < s->size; i++) {
		bool first = !i || memcmp(&s->places[i].node, &s->places[i - 1].node,
					  sizeof(s->places[i].node));

		if (first)
			s->leaders[g->nnodes++] = s->places[i].rank;
		if (first && !g->shape.nlocal)
			mine = i;
		if (s->places[i].rank == s->rank) {
			g->me = i - mine;
			g->shape.nlocal = g->me + 1;
		} else if (g->shape.nlocal && !memcmp(&s->places[i].node, &s->places[mine].node,
						      sizeof(s->places[i].node))) {
			g->shape.nlocal++;
		}
	}
	s->leader = s->places[mine].rank;
	qsort(s->leaders, (size_t)g->nnodes, sizeof(*s->leaders), compare_ranks);
	g->local = calloc((size_t)g->shape.nlocal, sizeof(struct tq_peer *));
	if (!g->local) {
		s->problem = "there is no memory left";
		return;
	}
	/* Others of the node are watched by the leader, and the leader by them. */
	for (i = 0; i < g->shape.nlocal; i++) {
		if (i && g->me)
			break;
		g->local[i] = find_peer(s, s->places[mine + i].rank);
	}
}

/* The same on all nodes, but for the number of processes. */
static void find_shape(struct mca_coll_tupleq_setup *s)
{
	struct mca_coll_tupleq_shape *shape = &s->c->group.shape;
	uint32_t limit = UINT32_MAX;

	for (int i = 0; i < s->size; i++)
		limit = card_of(s, i)->limit < limit ? card_of(s, i)->limit : limit;
	shape->limit = limit;
	shape->nslots = mca_coll_tupleq_doubling_slots(s->c->group.nnodes);
	shape->ntree = mca_coll_tupleq_tree_slots(s->c->group.nnodes);
}

static void make_segment(struct mca_coll_tupleq_setup *s, struct offer *offer)
{
	struct mca_coll_tupleq_group *g = &s->c->group;
	int rc = mca_coll_tupleq_segment_create(&g->shape, TUPLEQ_FIRST, &offer->name, &g->segment);

	if (rc) {
		s->problem = "there is no shared memory left";
		return;
	}
	rc = tq_mr_register(s->ep, g->segment, mca_coll_tupleq_segment_size(&g->shape), true,
			    &g->mr);
	if (!rc)
		rc = mca_coll_tupleq_mark_take(s->ep, &g->mark);
	if (rc == -ENOSPC) {
		s->problem = "this process leads too many communicators";
		return;
	}
	if (rc) {
		s->problem = "shared memory can't be registered (is the limit of locked memory, "
			     "ulimit -l, too low?)";
		return;
	}
	offer->addr = (uintptr_t)g->segment;
	offer->key = tq_mr_key(g->mr);
	offer->mark = g->mark;
}

static int share_offers(struct mca_coll_tupleq_setup *s)
{
	struct offer mine = {.ok = 0};

	s->c->group.ep = s->ep;
	find_places(s);
	find_shape(s);
	if (!s->problem && !s->c->group.me)
		make_segment(s, &mine);
	mine.ok = !s->problem;
	return share(s, &mine, sizeof(mine));
}

static bool all_have_offers(const struct mca_coll_tupleq_setup *s)
{
	for (int i = 0; i < s->size; i++) {
		if (!offer_of(s, i)->ok)
			return false;
	}
	return true;
}

static void attach(struct mca_coll_tupleq_setup *s)
{
	struct mca_coll_tupleq_group *g = &s->c->group;

	if (g->me &&
	    mca_coll_tupleq_segment_attach(&g->shape, offer_of(s, s->leader)->name, &g->segment))
		s->problem = "the shared memory of the node can't be attached";
}

/* Of each rank; leaders are sorted by rank. */
static void find_ranks(struct mca_coll_tupleq_setup *s)
{
	struct mca_coll_tupleq_group *g = &s->c->group;
	int first = 0, node = 0;

	for (int i = 0; i < s->size; i++) {
		if (!i ||
		    memcmp(&s->places[i].node, &s->places[first].node, sizeof(s->places[i].node))) {
			const int *leader =
				bsearch(&s->places[i].rank, s->leaders, (size_t)g->nnodes,
					sizeof(*s->leaders), compare_ranks);

			first = i;
			node = (int)(leader - s->leaders);
		}
		g->where[s->places[i].rank] = (struct mca_coll_tupleq_where){node, i - first};
	}
}

static void find_nodes(struct mca_coll_tupleq_setup *s)
{
	struct mca_coll_tupleq_group *g = &s->c->group;

	g->nodes = calloc((size_t)g->nnodes, sizeof(*g->nodes));
	g->where = calloc((size_t)s->size, sizeof(*g->where));
	g->sum = malloc(g->shape.limit);
	g->other = malloc(g->shape.limit);
	g->words = malloc(mca_coll_tupleq_words_size(g->shape.limit));
	if (!g->nodes || !g->where || (g->shape.limit && (!g->sum || !g->other || !g->words))) {
		s->problem = "there is no memory left";
		return;
	}
	find_ranks(s);
	for (int i = 0; i < g->nnodes; i++) {
		const struct offer *offer = offer_of(s, s->leaders[i]);

		if (s->leaders[i] == s->rank)
			g->node = i;
		g->nodes[i] = (struct mca_coll_tupleq_node){
			.leader = find_peer(s, s->leaders[i]),
			.addr = offer->addr,
			.key = offer->key,
			.mark = offer->mark,
		};
	}
	g->barrier.nsteps =
		mca_coll_tupleq_schedule((enum mca_coll_tupleq_pattern)mca_coll_tupleq.pattern,
					 g->nnodes, g->node, g->barrier.steps);
	g->reduction.nsteps =
		mca_coll_tupleq_schedule(TUPLEQ_DOUBLING, g->nnodes, g->node, g->reduction.steps);
}

static void connect_path(const struct mca_coll_tupleq_group *g,
			 const struct mca_coll_tupleq_path *path)
{
	for (int i = 0; i < path->nsteps; i++) {
		if (path->steps[i].to >= 0)
			tq_peer_connect(g->nodes[path->steps[i].to].leader);
		if (path->steps[i].from >= 0)
			tq_peer_connect(g->nodes[path->steps[i].from].leader);
	}
}

/* With all that are waited for, so that their death is noticed. */
static void connect_all(const struct mca_coll_tupleq_group *g)
{
	struct mca_coll_tupleq_path trees;

	if (g->me) {
		tq_peer_connect(g->local[0]);
		return;
	}
	for (int i = 1; i < g->shape.nlocal; i++)
		tq_peer_connect(g->local[i]);
	connect_path(g, &g->barrier);
	connect_path(g, &g->reduction);
	/* Those on all trees. */
	trees.nsteps =
		mca_coll_tupleq_schedule(TUPLEQ_DISSEMINATION, g->nnodes, g->node, trees.steps);
	connect_path(g, &trees);
}

static int share_verdict(struct mca_coll_tupleq_setup *s)
{
	bool mine;

	attach(s);
	if (!s->problem && !s->c->group.me)
		find_nodes(s);
	mine = !s->problem;
	return share(s, &mine, sizeof(mine));
}

static bool all_agree(const struct mca_coll_tupleq_setup *s)
{
	for (int i = 0; i < s->size; i++) {
		if (!*(const bool *)mca_coll_tupleq_exchange_of(&s->exchange[VERDICTS], i))
			return false;
	}
	return true;
}

static void free_setup(struct mca_coll_tupleq_setup *s)
{
	for (int i = 0; i < EXCHANGES; i++)
		mca_coll_tupleq_exchange_end(&s->exchange[i]);
	free(s->leaders);
	free(s->places);
	free(s);
}

/* ---- the three exchanges ---- */

/* From this one on: nobody shall wait for us. */
static void refuse(ompi_communicator_t *comm, int stage)
{
	for (; stage < EXCHANGES; stage++)
		mca_coll_tupleq_exchange_refuse(comm, tag_of(stage), 1);
}

int mca_coll_tupleq_setup_start(struct mca_coll_tupleq_module *c)
{
	struct mca_coll_tupleq_setup *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s) {
		refuse(c->comm, CARDS);
		return rc;
	}
	s->c = c;
	s->size = ompi_comm_size(c->comm);
	s->rank = ompi_comm_rank(c->comm);
	s->stage = CARDS;
	s->places = calloc((size_t)s->size, sizeof(*s->places));
	s->leaders = calloc((size_t)s->size, sizeof(*s->leaders));
	if (s->places && s->leaders)
		rc = share_cards(s);
	else
		refuse(c->comm, CARDS);
	if (rc) {
		free_setup(s);
		return rc;
	}
	c->setup = s;
	mca_coll_tupleq_set_state(c, TUPLEQ_SETTING);
	return 0;
}

/* All have given what belongs to the stage. 1: that settles it; 0: the next has begun; -errno. */
static int next_stage(struct mca_coll_tupleq_setup *s, bool *agreed)
{
	switch (s->stage) {
	case CARDS:
		if (!all_have_cards(s))
			return 1;
		s->stage = OFFERS;
		return share_offers(s);
	case OFFERS:
		if (!all_have_offers(s))
			return 1;
		s->stage = VERDICTS;
		return share_verdict(s);
	default:
		*agreed = all_agree(s);
		return 1;
	}
}

static void settle(struct mca_coll_tupleq_setup *s, bool agreed)
{
	struct mca_coll_tupleq_module *c = s->c;
	struct mca_coll_tupleq_group *g = &c->group;

	if (s->problem)
		mca_coll_tupleq_say(c->comm, "%s", s->problem);
	if (agreed) {
		g->calls = mca_coll_tupleq_call_of(g->segment, &g->shape, g->me, 0);
		connect_all(g);
		mca_coll_tupleq_say(c->comm, "%d nodes, %d processes on this one; %s", g->nnodes,
				    g->shape.nlocal, tq_device_text(s->ep));
	} else {
		mca_coll_tupleq_teardown(c);
		mca_coll_tupleq_say(c->comm,
				    "not every process can take part: barriers are messages, and "
				    "other components do the other collectives");
	}
	if (agreed)
		mca_coll_tupleq_watch_add(c);
	mca_coll_tupleq_set_state(c, agreed ? TUPLEQ_READY : TUPLEQ_DECLINED);
}

int mca_coll_tupleq_setup_poll(struct mca_coll_tupleq_module *c)
{
	struct mca_coll_tupleq_setup *s = c->setup;
	bool agreed = false;
	int rc;

	do {
		rc = mca_coll_tupleq_exchange_poll(&s->exchange[s->stage]);
		if (rc > 0)
			rc = next_stage(s, &agreed);
		else if (!rc)
			return 0;
	} while (!rc);
	if (rc > 0)
		settle(s, agreed);
	else
		refuse(c->comm, (int)s->stage + 1);
	free_setup(s);
	c->setup = NULL;
	return rc;
}

void mca_coll_tupleq_teardown(struct mca_coll_tupleq_module *c)
{
	struct mca_coll_tupleq_group *g = &c->group;

	/* All that was written to us was waited for; but where that failed, more may come, and it
	 * needs the memory. */
	if (c->failed && g->mr)
		tq_mr_abandon(g->ep, g->mr);
	else if (g->mr)
		tq_mr_deregister(g->mr);
	if (g->segment && !(c->failed && g->mr))
		mca_coll_tupleq_segment_detach(g->segment);
	mca_coll_tupleq_mark_give_back(&g->mark);
	free(g->words);
	free(g->other);
	free(g->sum);
	free(g->where);
	free(g->nodes);
	free(g->local);
	memset(g, 0, sizeof(*g));
}
