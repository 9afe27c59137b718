/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set-up of a communicator, at its first operation, by three exchanges of messages:
 * addresses, from which each process finds the nodes and their leaders; the segments that the
 * leaders have created; and whether each process is ready. opal_progress() advances the set-up as
 * well, because a nonblocking operation may start before it has ended.
 */
#include "coll.h"

#include <errno.h>
#include <stdlib.h>

#include "log.h"

/* The longest address (bytes) of an endpoint: that of this version of the library. */
#define ADDRESS_MAX 64

/* The first exchange: a process's endpoint. */
struct endpoint_info {
	uint8_t address[ADDRESS_MAX];
	uint32_t len;   /* 0: it has no endpoint */
	uint32_t limit; /* bytes of data */
};

/* The second exchange: a node's segment. Only a leader fills in more than `ok`. */
struct segment_info {
	uint64_t name; /* by which the node's processes attach it */
	uint64_t addr; /* to which other leaders write */
	struct mca_coll_tupleq_notice notice;
	uint32_t key;
	uint32_t ok; /* the sender has had no problem so far */
};

/* A process; they are sorted by node, then by rank. */
struct process {
	struct tq_node_id node;
	int rank;
};

struct mca_coll_tupleq_setup {
	struct mca_coll_tupleq_module *module;
	struct tq_ep *ep;
	int size, rank;
	enum { ENDPOINTS, SEGMENTS, VERDICTS, EXCHANGES } stage;
	struct mca_coll_tupleq_exchange exchange[EXCHANGES];
	struct process *processes;
	int *leaders;        /* ranks, ascending */
	int leader;          /* of this process's node */
	const char *problem; /* why this process can't take part; NULL: it can */
};

_Static_assert(EXCHANGES <= SERIES_SETUP_TAGS, "each exchange has a tag");

static int tag_of(int stage)
{
	return SERIES_SETUP_TAG - stage;
}

static int start_exchange(struct mca_coll_tupleq_setup *setup, const void *mine, size_t bytes)
{
	return mca_coll_tupleq_exchange_start(&setup->exchange[setup->stage], setup->module->comm,
					      tag_of((int)setup->stage), mine, bytes);
}

static const struct endpoint_info *endpoint_of(const struct mca_coll_tupleq_setup *setup, int rank)
{
	return mca_coll_tupleq_exchange_of(&setup->exchange[ENDPOINTS], rank);
}

static const struct segment_info *segment_of(const struct mca_coll_tupleq_setup *setup, int rank)
{
	return mca_coll_tupleq_exchange_of(&setup->exchange[SEGMENTS], rank);
}

static int share_endpoint(struct mca_coll_tupleq_setup *setup)
{
	struct endpoint_info mine = {.limit = (uint32_t)mca_coll_tupleq.limit};
	const void *address = NULL;
	size_t len = 0;

	setup->ep = tq_find(series_job_key());
	if (setup->ep)
		address = tq_address(setup->ep, &len);
	if (!address)
		setup->problem = "this process has no endpoint of pml tupleq's";
	else if (len > sizeof(mine.address))
		setup->problem = "libtupleq is of another version";
	else
		memcpy(mine.address, address, mine.len = (uint32_t)len);
	return start_exchange(setup, &mine, sizeof(mine));
}

static bool all_have_endpoints(const struct mca_coll_tupleq_setup *setup)
{
	for (int i = 0; i < setup->size; i++)
		if (!endpoint_of(setup, i)->len)
			return false;
	return true;
}

static int compare_processes(const void *left, const void *right)
{
	const struct process *first = left, *second = right;
	int order = memcmp(&first->node, &second->node, sizeof(first->node));

	return order ? order : (first->rank > second->rank) - (first->rank < second->rank);
}

static int compare_ranks(const void *left, const void *right)
{
	return (*(const int *)left > *(const int *)right) -
	       (*(const int *)left < *(const int *)right);
}

static struct tq_peer *find_peer(struct mca_coll_tupleq_setup *setup, int rank)
{
	const struct endpoint_info *endpoint_info = endpoint_of(setup, rank);
	struct tq_peer *peer = tq_peer_find(setup->ep, endpoint_info->address, endpoint_info->len);

	if (!peer)
		setup->problem = "a process isn't known to pml tupleq";
	return peer;
}

/* Finds the processes of this node, and the leaders of all nodes. */
static void locate_processes(struct mca_coll_tupleq_setup *setup)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;
	int i, mine = 0;

	for (i = 0; i < setup->size; i++) {
		const struct endpoint_info *endpoint_info = endpoint_of(setup, i);

		setup->processes[i].rank = i;
		if (tq_address_node(endpoint_info->address, endpoint_info->len,
				    &setup->processes[i].node))
			setup->problem = "a process uses another version of TupleQ";
	}
	qsort(setup->processes, (size_t)setup->size, sizeof(*setup->processes), compare_processes);
	for (i = 0; i < setup->size; i++) {
		bool first = !i || memcmp(&setup->processes[i].node, &setup->processes[i - 1].node,
					  sizeof(setup->processes[i].node));

		if (first)
			setup->leaders[group->nnodes++] = setup->processes[i].rank;
		if (first && !group->shape.nlocal)
			mine = i;
		if (setup->processes[i].rank == setup->rank) {
			group->local_rank = i - mine;
			group->shape.nlocal = group->local_rank + 1;
		} else if (group->shape.nlocal &&
			   !memcmp(&setup->processes[i].node, &setup->processes[mine].node,
				   sizeof(setup->processes[i].node))) {
			group->shape.nlocal++;
		}
	}
	setup->leader = setup->processes[mine].rank;
	qsort(setup->leaders, (size_t)group->nnodes, sizeof(*setup->leaders), compare_ranks);
	group->local_peers = calloc((size_t)group->shape.nlocal, sizeof(struct tq_peer *));
	if (!group->local_peers) {
		setup->problem = "there is no memory left";
		return;
	}
	/* The leader waits for all processes of its node, and each of these for the leader. */
	for (i = 0; i < group->shape.nlocal; i++) {
		if (i && group->local_rank)
			break;
		group->local_peers[i] = find_peer(setup, setup->processes[mine + i].rank);
	}
}

/* Computes the sizes of the segment from values that are equal on all nodes. */
static void choose_shape(struct mca_coll_tupleq_setup *setup)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;
	struct mca_coll_tupleq_shape *shape = &group->shape;
	uint32_t limit = UINT32_MAX;

	for (int i = 0; i < setup->size; i++)
		if (endpoint_of(setup, i)->limit < limit)
			limit = endpoint_of(setup, i)->limit;
	shape->limit = limit;
	group->radix = mca_coll_tupleq_radix(group->nnodes, TUPLEQ_TREE_RADIX);
	group->short_radix = mca_coll_tupleq_radix(group->nnodes - 1, TUPLEQ_RADIX_MAX);
	shape->nslots = mca_coll_tupleq_reduction_slots(group->nnodes);
	shape->ntree = mca_coll_tupleq_tree_slots(group->nnodes, group->radix);
}

static void make_segment(struct mca_coll_tupleq_setup *setup, struct segment_info *segment_info)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;
	int rc = mca_coll_tupleq_segment_create(&group->shape, TUPLEQ_FIRST, &segment_info->name,
						&group->segment);

	if (rc) {
		setup->problem = "there is no shared memory left";
		return;
	}
	rc = tq_mr_expose(setup->ep, group->segment, mca_coll_tupleq_segment_size(&group->shape),
			  TQ_ACCESS_READ | TQ_ACCESS_WRITE, &group->mr);
	if (!rc)
		rc = mca_coll_tupleq_notice_acquire(setup->ep, &group->notice);
	if (rc == -ENOSPC) {
		setup->problem = "this process leads too many communicators";
		return;
	}
	if (rc) {
		setup->problem =
			"shared memory can't be registered (either the limit of locked memory, "
			"ulimit -l, is too low, or the adapter has no more registrations)";
		if (rc == -ENOMEM)
			mca_coll_tupleq_warn_unserved(setup->module->comm, setup->problem);
		return;
	}
	segment_info->addr = (uintptr_t)group->segment;
	segment_info->key = tq_mr_key(group->mr);
	segment_info->notice = group->notice;
}

static int share_segment(struct mca_coll_tupleq_setup *setup)
{
	struct segment_info mine = {.ok = 0};

	setup->module->group.ep = setup->ep;
	locate_processes(setup);
	choose_shape(setup);
	if (!setup->problem && !setup->module->group.local_rank)
		make_segment(setup, &mine);
	mine.ok = !setup->problem;
	return start_exchange(setup, &mine, sizeof(mine));
}

static bool all_have_segments(const struct mca_coll_tupleq_setup *setup)
{
	for (int i = 0; i < setup->size; i++)
		if (!segment_of(setup, i)->ok)
			return false;
	return true;
}

static void attach(struct mca_coll_tupleq_setup *setup)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;

	if (group->local_rank &&
	    mca_coll_tupleq_segment_attach(&group->shape, segment_of(setup, setup->leader)->name,
					   &group->segment))
		setup->problem = "the shared memory of the node can't be attached";
}

/* Finds the location of each rank. Nodes are numbered by the ranks of their leaders. */
static void locate_ranks(struct mca_coll_tupleq_setup *setup)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;
	int first = 0, node = 0;

	for (int i = 0; i < setup->size; i++) {
		if (!i || memcmp(&setup->processes[i].node, &setup->processes[first].node,
				 sizeof(setup->processes[i].node))) {
			const int *leader = bsearch(&setup->processes[i].rank, setup->leaders,
						    (size_t)group->nnodes, sizeof(*setup->leaders),
						    compare_ranks);

			first = i;
			node = (int)(leader - setup->leaders);
		}
		group->locations[setup->processes[i].rank] =
			(struct mca_coll_tupleq_location){node, i - first};
	}
}

static void find_nodes(struct mca_coll_tupleq_setup *setup)
{
	struct mca_coll_tupleq_group *group = &setup->module->group;

	group->nodes = calloc((size_t)group->nnodes, sizeof(*group->nodes));
	group->locations = calloc((size_t)setup->size, sizeof(*group->locations));
	group->accumulator = malloc(group->shape.limit);
	group->before = malloc(group->shape.limit);
	group->incoming = malloc(group->shape.limit);
	group->outgoing = malloc(mca_coll_tupleq_words_size(group->shape.limit));
	if (!group->nodes || !group->locations ||
	    (group->shape.limit && (!group->accumulator || !group->before || !group->incoming)) ||
	    !group->outgoing) {
		setup->problem = "there is no memory left";
		return;
	}
	locate_ranks(setup);
	for (int i = 0; i < group->nnodes; i++) {
		const struct segment_info *segment_info = segment_of(setup, setup->leaders[i]);

		if (setup->leaders[i] == setup->rank)
			group->node = i;
		group->nodes[i] = (struct mca_coll_tupleq_node){
			.leader = find_peer(setup, setup->leaders[i]),
			.addr = segment_info->addr,
			.key = segment_info->key,
			.notice = segment_info->notice,
		};
	}
	mca_coll_tupleq_barrier_path((enum mca_coll_tupleq_pattern)mca_coll_tupleq.pattern,
				     group->nnodes, group->node, &group->barrier);
	mca_coll_tupleq_reduction_path(group->nnodes, group->node, &group->reduction);
}

static void connect_path(const struct mca_coll_tupleq_group *group,
			 const struct mca_coll_tupleq_path *path)
{
	for (int i = 0; i < path->nsteps; i++)
		tq_peer_connect(group->nodes[path->steps[i].node].leader);
}

static void connect_trees(struct mca_coll_tupleq_group *group, int radix)
{
	for (int is_root = 0; is_root < 2; is_root++) {
		mca_coll_tupleq_tree_neighbors(group->nnodes, radix, group->node, is_root,
					       &group->tree);
		connect_path(group, &group->tree);
	}
}

/* Connects to each process that this one may wait for, so that its failure is noticed. */
static void connect_all(struct mca_coll_tupleq_group *group)
{
	if (group->local_rank) {
		tq_peer_connect(group->local_peers[0]);
		return;
	}
	for (int i = 1; i < group->shape.nlocal; i++)
		tq_peer_connect(group->local_peers[i]);
	connect_path(group, &group->barrier);
	connect_path(group, &group->reduction);
	connect_trees(group, group->radix);
	connect_trees(group, group->short_radix);
}

static int share_verdict(struct mca_coll_tupleq_setup *setup)
{
	bool mine;

	attach(setup);
	if (!setup->problem && !setup->module->group.local_rank)
		find_nodes(setup);
	mine = !setup->problem;
	return start_exchange(setup, &mine, sizeof(mine));
}

static bool all_agree(const struct mca_coll_tupleq_setup *setup)
{
	for (int i = 0; i < setup->size; i++)
		if (!*(const bool *)mca_coll_tupleq_exchange_of(&setup->exchange[VERDICTS], i))
			return false;
	return true;
}

static void free_setup(struct mca_coll_tupleq_setup *setup)
{
	for (int i = 0; i < EXCHANGES; i++)
		mca_coll_tupleq_exchange_end(&setup->exchange[i]);
	free(setup->leaders);
	free(setup->processes);
	free(setup);
}

/* Refuses the exchanges from `stage` on, so that no process waits for this one. */
static void refuse(ompi_communicator_t *comm, int stage)
{
	for (; stage < EXCHANGES; stage++)
		mca_coll_tupleq_exchange_refuse(comm, tag_of(stage), 1);
}

int mca_coll_tupleq_setup_start(struct mca_coll_tupleq_module *module)
{
	struct mca_coll_tupleq_setup *setup = calloc(1, sizeof(*setup));
	int rc = -ENOMEM;

	if (!setup) {
		refuse(module->comm, ENDPOINTS);
		return rc;
	}
	setup->module = module;
	setup->size = ompi_comm_size(module->comm);
	setup->rank = ompi_comm_rank(module->comm);
	setup->stage = ENDPOINTS;
	setup->processes = calloc((size_t)setup->size, sizeof(*setup->processes));
	setup->leaders = calloc((size_t)setup->size, sizeof(*setup->leaders));
	if (setup->processes && setup->leaders)
		rc = share_endpoint(setup);
	else
		refuse(module->comm, ENDPOINTS);
	if (rc) {
		free_setup(setup);
		return rc;
	}
	module->setup = setup;
	mca_coll_tupleq_set_state(module, TUPLEQ_SETTING_UP);
	return 0;
}

/* Evaluates the stage's exchange and starts the next one. Returns 1 if the result of the set-up is
 * known, 0 if it isn't yet, or -errno. */
static int next_stage(struct mca_coll_tupleq_setup *setup, bool *agreed)
{
	switch (setup->stage) {
	case ENDPOINTS:
		if (!all_have_endpoints(setup))
			return 1;
		setup->stage = SEGMENTS;
		return share_segment(setup);
	case SEGMENTS:
		if (!all_have_segments(setup))
			return 1;
		setup->stage = VERDICTS;
		return share_verdict(setup);
	default:
		*agreed = all_agree(setup);
		return 1;
	}
}

static void settle(struct mca_coll_tupleq_setup *setup, bool agreed)
{
	struct mca_coll_tupleq_module *module = setup->module;
	struct mca_coll_tupleq_group *group = &module->group;

	if (setup->problem)
		mca_coll_tupleq_verbose(module->comm, "%s", setup->problem);
	if (agreed) {
		group->calls = mca_coll_tupleq_call_of(group->segment, &group->shape,
						       group->local_rank, 0);
		connect_all(group);
		mca_coll_tupleq_verbose(module->comm, "%d nodes, %d processes on this one; %s",
					group->nnodes, group->shape.nlocal,
					tq_device_text(setup->ep));
		mca_coll_tupleq_mismatch_add(module);
	} else {
		mca_coll_tupleq_teardown(module);
		mca_coll_tupleq_verbose(
			module->comm, "not every process can take part: barriers are messages, and "
				      "other components do the other collectives");
	}
	mca_coll_tupleq.settled[agreed]++;
	mca_coll_tupleq_set_state(module, agreed ? TUPLEQ_READY : TUPLEQ_DECLINED);
}

int mca_coll_tupleq_setup_poll(struct mca_coll_tupleq_module *module)
{
	struct mca_coll_tupleq_setup *setup = module->setup;
	bool agreed = false;
	int rc;

	do {
		rc = mca_coll_tupleq_exchange_poll(&setup->exchange[setup->stage]);
		if (rc > 0)
			rc = next_stage(setup, &agreed);
		else if (!rc)
			return 0;
	} while (!rc);
	if (rc > 0)
		settle(setup, agreed);
	else
		refuse(module->comm, (int)setup->stage + 1);
	free_setup(setup);
	module->setup = NULL;
	return rc;
}

void mca_coll_tupleq_teardown(struct mca_coll_tupleq_module *module)
{
	struct mca_coll_tupleq_group *group = &module->group;

	/* Each write to this process has been awaited, unless the communicator failed: then more
	 * writes may come, so the memory must stay registered. */
	if (module->failed && group->mr)
		tq_mr_abandon(group->ep, group->mr);
	else if (group->mr)
		tq_mr_deregister(group->mr);
	if (group->segment && !(module->failed && group->mr))
		mca_coll_tupleq_segment_detach(group->segment);
	mca_coll_tupleq_notice_release(&group->notice);
	free(group->outgoing);
	free(group->incoming);
	free(group->before);
	free(group->accumulator);
	free(group->locations);
	free(group->nodes);
	free(group->local_peers);
	mca_coll_tupleq_group_clear(group);
}
