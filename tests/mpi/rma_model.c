/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_model.c - rma_model SEED ROUNDS FLAVOUR [FAULT...]: random one-sided operations, predefined
 * types and layouts by all kinds of synchronization, compared with a model. In each round each rank
 * accesses slots of its own in the windows of all ranks. Both the origin and the target compute
 * what the accesses do from SEED, so the model needs no messages. FAULT is a pattern of
 * accesses that aren't made, as access_is_named() says. Two ranks or more.
 */
#include "rma_access.h"

enum {
	SLOTS = 3, /* for each origin at each target */
	PHASES = 2,
	SERIES = 3, /* accumulates to one slot in a phase at most, which MPI orders */
};

enum sync {
	SYNC_FENCE,
	SYNC_POST,
	SYNC_LOCK,
	SYNC_EXCLUSIVE,
	SYNC_LOCK_ALL,
	SYNC_REQUEST, /* locks of all, and calls that return requests */
	SYNCS
};

static const char *const sync_names[] = {
	"fence", "post and start", "lock", "exclusive lock", "lock_all", "requests",
};

/* The slot of an origin at a target in this round. */
struct slot {
	int origin, target, index;
	const struct rma_type *type;
	unsigned char *model;
	struct access accesses[SERIES];
	int n;
};

static uint64_t seed;
static char **faults;
static int unit;
static MPI_Win win;
static unsigned char *memory; /* this rank's, with the slots of each origin */
static MPI_Aint *bases;       /* the displacements of all ranks' memory, in bytes */
static MPI_Group everybody;

static size_t slot_offset(const struct slot *slot)
{
	return (size_t)SLOT * (size_t)(slot->origin * SLOTS + slot->index);
}

static struct t_rng slot_rng(const struct slot *slot, int round, int phase)
{
	int pair = slot->origin * t_size + slot->target;

	return t_rng(seed, (uint64_t)(round * (PHASES + 1) + phase),
		     (uint64_t)(pair * SLOTS + slot->index));
}

/* Chooses the type and the first content of a slot. */
static void begin_slot(struct slot *slot, int round)
{
	struct t_rng rng = slot_rng(slot, round, PHASES);

	slot->type = rma_type_choose(&rng);
	for (size_t at = 0; at < SLOT; at += slot->type->extent)
		rma_type_fill(slot->type, &rng, slot->model + at);
}

static bool accumulates(enum access_kind kind)
{
	return kind >= ACCESS_ACCUMULATE && kind <= ACCESS_FETCH_AND_OP;
}

/* Chooses an access, unless it is a known fault. */
static void choose_access(struct slot *slot, struct t_rng *rng, enum access_kind kind, MPI_Op op)
{
	struct access *access = &slot->accesses[slot->n];

	if (accumulates(kind) && kind != ACCESS_ACCUMULATE && t_chance(rng, 15))
		op = MPI_NO_OP;
	access_choose(access, rng, kind, slot->type, op, unit);
	if (access_is_named(access, faults))
		access_free(access);
	else
		slot->n++;
}

/* Chooses the accesses to a slot in a phase: one, or several accumulates by one operation. */
static void choose_accesses(struct slot *slot, int round, int phase)
{
	struct t_rng rng = slot_rng(slot, round, phase);
	enum access_kind kind = (enum access_kind)t_below(&rng, ACCESS_KINDS);
	MPI_Op op = MPI_REPLACE;
	int n = 1;

	slot->n = 0;
	if (kind == ACCESS_COMPARE_AND_SWAP && !rma_type_can_swap(slot->type))
		kind = ACCESS_FETCH_AND_OP;
	if (accumulates(kind)) {
		n += t_below(&rng, SERIES);
		if (t_chance(&rng, 80))
			op = rma_type_operation(slot->type, &rng);
	}
	choose_access(slot, &rng, kind, op);
	for (int i = 1; i < n; i++) {
		kind = ACCESS_ACCUMULATE + (enum access_kind)t_below(&rng, 3);
		choose_access(slot, &rng, kind, op);
	}
	for (int i = 0; i < slot->n; i++)
		access_model(&slot->accesses[i], slot->model);
}

static void free_accesses(struct slot *slot)
{
	for (int i = 0; i < slot->n; i++)
		access_free(&slot->accesses[i]);
}

static void fail(const struct slot *slot, int round, enum sync sync, const char *what)
{
	char text[SERIES][ACCESS_TEXT] = {""};

	for (int i = 0; i < slot->n; i++)
		access_describe(&slot->accesses[i], text[i], sizeof(text[i]));
	t_fail("%s at rank %d by rank %d in round %d, %s: %s; %s; %s", what, slot->target,
	       slot->origin, round, sync_names[sync], text[0], text[1], text[2]);
}

/* ---- the origin ---- */

static void begin_epoch(enum sync sync)
{
	switch (sync) {
	case SYNC_FENCE:
		MPI_Win_fence(0, win);
		break;
	case SYNC_POST:
		MPI_Win_post(everybody, 0, win);
		MPI_Win_start(everybody, 0, win);
		break;
	case SYNC_LOCK_ALL:
	case SYNC_REQUEST:
		MPI_Win_lock_all(0, win);
		break;
	default:
		break;
	}
}

static void end_epoch(enum sync sync)
{
	switch (sync) {
	case SYNC_FENCE:
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
		break;
	case SYNC_POST:
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		break;
	case SYNC_LOCK_ALL:
	case SYNC_REQUEST:
		MPI_Win_unlock_all(win);
		break;
	default:
		break;
	}
}

static void wait_for(struct slot *slot)
{
	for (int i = 0; i < slot->n; i++)
		MPI_Wait(&slot->accesses[i].request, MPI_STATUS_IGNORE);
}

/* Calls MPI for all accesses of this rank to a target in a phase. */
static void access_target(struct slot *slots, int target, enum sync sync)
{
	bool locks = sync == SYNC_LOCK || sync == SYNC_EXCLUSIVE;

	if (locks)
		MPI_Win_lock(sync == SYNC_LOCK ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0,
			     win);
	for (int i = 0; i < SLOTS; i++) {
		MPI_Aint at = (bases[target] + (MPI_Aint)slot_offset(&slots[i])) / unit;

		for (int j = 0; j < slots[i].n; j++)
			access_call(&slots[i].accesses[j], target, at, unit, sync == SYNC_REQUEST,
				    win);
	}
	if (locks)
		MPI_Win_unlock(target, win);
}

/* Makes the accesses of this rank to all targets in a phase. */
static void run_phase(struct slot *slots, int round, int phase, enum sync sync)
{
	for (int i = 0; i < t_size * SLOTS; i++)
		choose_accesses(&slots[i], round, phase);
	if (phase == 0 || sync == SYNC_FENCE || sync == SYNC_POST)
		begin_epoch(sync);
	for (int i = 0; i < t_size; i++) {
		int target = (t_rank + i) % t_size;

		access_target(&slots[target * SLOTS], target, sync);
	}
	for (int i = 0; i < t_size * SLOTS; i++)
		wait_for(&slots[i]);
	if (phase == PHASES - 1 || sync == SYNC_FENCE || sync == SYNC_POST)
		end_epoch(sync);
	else if (sync == SYNC_LOCK_ALL || sync == SYNC_REQUEST)
		MPI_Win_flush_all(win);
	for (int i = 0; i < t_size * SLOTS; i++) {
		for (int j = 0; j < slots[i].n; j++)
			if (!access_verify(&slots[i].accesses[j]))
				fail(&slots[i], round, sync, "a wrong result");
		free_accesses(&slots[i]);
	}
}

/* ---- the target ---- */

/* Compares a slot of this rank with what the origin's accesses make of it. */
static void verify_slot(struct slot *slot, int round, enum sync sync)
{
	const unsigned char *mine = memory + slot_offset(slot);

	for (int phase = 0; phase < PHASES; phase++) {
		choose_accesses(slot, round, phase);
		if (phase < PHASES - 1)
			free_accesses(slot);
	}
	for (size_t at = 0; at < SLOT; at += slot->type->extent)
		if (!rma_type_equal(slot->type, mine + at, slot->model + at))
			fail(slot, round, sync, "wrong memory (of the last phase)");
	free_accesses(slot);
}

/* Makes the slots that have this origin, or this target (-1: of all). */
static struct slot *make_slots(int origin, int target)
{
	struct slot *slots = t_alloc(sizeof(*slots) * (size_t)(t_size * SLOTS));

	for (int i = 0; i < t_size * SLOTS; i++)
		slots[i] = (struct slot){.origin = origin < 0 ? i / SLOTS : origin,
					 .target = target < 0 ? i / SLOTS : target,
					 .index = i % SLOTS,
					 .model = t_alloc(SLOT)};
	return slots;
}

static void free_slots(struct slot *slots)
{
	for (int i = 0; i < t_size * SLOTS; i++)
		free(slots[i].model);
	free(slots);
}

static void run_round(struct slot *mine, struct slot *here, int round)
{
	enum sync sync = (enum sync)(round % SYNCS);

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_rank, 0, win);
	for (int i = 0; i < t_size * SLOTS; i++) {
		begin_slot(&mine[i], round);
		begin_slot(&here[i], round);
		memcpy(memory + slot_offset(&here[i]), here[i].model, SLOT);
	}
	MPI_Win_unlock(t_rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int phase = 0; phase < PHASES; phase++)
		run_phase(mine, round, phase, sync);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
	for (int i = 0; i < t_size * SLOTS; i++)
		verify_slot(&here[i], round, sync);
	MPI_Win_unlock(t_rank, win);
}

static void open_window(const char *flavour)
{
	MPI_Aint size = (MPI_Aint)SLOT * SLOTS * t_size, base = 0;

	unit = 1 << seed % 4;
	if (!strcmp(flavour, "allocate")) {
		MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	} else {
		memory = t_alloc((size_t)size);
		if (!strcmp(flavour, "create")) {
			MPI_Win_create(memory, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		} else {
			unit = 1;
			MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
			MPI_Win_attach(win, memory, size);
			MPI_Get_address(memory, &base);
		}
	}
	bases = t_alloc(sizeof(*bases) * (size_t)t_size);
	MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Win_get_group(win, &everybody);
}

static void close_window(const char *flavour)
{
	MPI_Group_free(&everybody);
	if (!strcmp(flavour, "dynamic"))
		MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	if (strcmp(flavour, "allocate") != 0)
		free(memory);
	free(bases);
}

int main(int argc, char **argv)
{
	const char *flavour = argc > 3 ? argv[3] : "create";
	struct slot *mine, *here;
	double start;
	int rounds;

	t_init(&argc, &argv, 2);
	seed = (uint64_t)t_arg(argc, argv, 1, 1);
	rounds = (int)t_arg(argc, argv, 2, 60);
	faults = argc > 4 ? argv + 4 : argv + argc;
	open_window(flavour);
	mine = make_slots(t_rank, -1);
	here = make_slots(-1, t_rank);
	t_begin("rma_model: %s, seed %d", flavour, (int)seed);
	start = MPI_Wtime();
	for (int round = 0; round < rounds && !t_enough(start); round++)
		run_round(mine, here, round);
	t_end();
	free_slots(mine);
	free_slots(here);
	close_window(flavour);
	return t_finish();
}
