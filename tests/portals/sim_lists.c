/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libportals' matching against Portals' rules (judge.h), on a model of libtupleq (contract.h):
 * random programs in random schedules, then all schedules of small programs.
 *
 * sim_lists [--runs N] [--seed FIRST] [--limit SCHEDULES]; sim_lists --trace SEED shows a run
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../transport/runner.h"
#include "contract.h"
#include "entry.h"
#include "judge.h"
#include "wire.h"

#define PT        5
#define USER_MOST 14
#define PUTS_MOST 14

enum what { APPEND, SEARCH, UNLINK, DISABLE, ENABLE };

/* What the user does. */
struct user_step {
	enum what what;
	unsigned entry; /* UNLINK: its number */
	bool remove;    /* SEARCH: PTL_SEARCH_DELETE */
	ptl_list_t list;
	unsigned options;
	unsigned bits, ignore; /* two bits */
	int from;              /* 0: any process */
	ptl_size_t length, min_free;
};

struct put_step {
	int from;
	unsigned bits;
	ptl_size_t length, offset;
	bool quiet; /* wants no acknowledgement */
};

struct program {
	const char *name;
	struct user_step user[USER_MOST];
	struct put_step puts[PUTS_MOST];
	bool flow;
	int max_headers; /* 0: many */
};

/* Paths that all runs together have to reach. */
#define PATHS(X)      \
	X(by_hca)     \
	X(by_library) \
	X(refused) X(waited) X(unlinked) X(in_use) X(gone) X(ended) X(freed) X(searched) X(disabled)
struct paths {
#define X(name) uint64_t name;
	PATHS(X)
#undef X
};
static struct paths *paths;

static struct schedule *schedule;
static struct {
	const struct program *program;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_pt_index_t pt;
	unsigned nuser;
	struct judge_entry *unlinking;
	bool was_removed;
	bool closed; /* PtlPTDisable() has returned */
} run;

/* ---- what the model of libtupleq tells ---- */

static void on_arrival(unsigned id, const void *by_hca)
{
	const struct judge_entry *entry =
		by_hca ? ((const struct p4_entry *)by_hca)->user_ptr : NULL;

	SIM_TRACE("      put %u arrives%s", id, by_hca ? ", matched by the HCA" : "");
	if (by_hca)
		paths->by_hca++;
	else
		paths->by_library++;
	judge_arrives(judge_put(id), entry, !run.closed);
}

static void on_stored(unsigned id)
{
	judge_stored(judge_put(id));
}

static void on_removed(void)
{
	t_true(run.unlinking, "an entry is taken out of its list");
	judge_unlink(run.unlinking);
	run.was_removed = true;
}

static void on_answer(int to, const void *header, const void *data, uint64_t len)
{
	struct p4_wire_response wire;
	struct judge_put *put;

	(void)data;
	memcpy(&wire, header, sizeof(wire));
	put = judge_put((unsigned)wire.cookie - 1);
	t_true(to == put->from && !len, "an answer to put %u goes to process %d", put->id, to);
	judge_answer(put, wire.fail, wire.mlength, wire.offset, wire.list);
}

static const struct contract_ops ops = {on_arrival, on_stored, on_answer, on_removed};

/* ---- the user ---- */

static void drain(void)
{
	ptl_event_t event;

	while (PtlEQGet(run.eq, &event) == PTL_OK) {
		paths->ended += event.type == PTL_EVENT_AUTO_UNLINK;
		paths->freed += event.type == PTL_EVENT_AUTO_FREE;
		paths->waited += event.type == PTL_EVENT_PUT_OVERFLOW;
		paths->searched += event.type == PTL_EVENT_SEARCH && !event.ni_fail_type;
		paths->disabled += event.type == PTL_EVENT_PT_DISABLED;
		judge_event(&event, (int)event.initiator.phys.nid - 100);
	}
}

/* Returns two bits at two places of the match bits. */
static ptl_match_bits_t wide(unsigned bits)
{
	return (bits & 1) | (ptl_match_bits_t)(bits >> 1 & 1) << 63;
}

static struct judge_entry *make_entry(const struct user_step *step)
{
	struct judge_entry *entry = judge_entry_new();
	ptl_process_t id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};

	if (!entry)
		return NULL;
	if (step->from) {
		id.phys.nid = contract_locator(step->from).port;
		id.phys.pid = contract_locator(step->from).number;
	}
	entry->from = step->from;
	entry->list = step->list;
	entry->me = (ptl_me_t){
		.start = entry->room,
		.length = step->length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = PTL_ME_OP_PUT | step->options,
		.match_id = id,
		.match_bits = wide(step->bits),
		.ignore_bits = wide(step->ignore),
		.min_free = step->min_free,
	};
	return entry;
}

static void append(const struct user_step *step)
{
	struct judge_entry *entry = make_entry(step);

	if (!entry)
		return;
	judge_append(entry);
	t_eq(PtlMEAppend(run.ni, run.pt, &entry->me, entry->list, entry, &entry->handle), PTL_OK);
}

static void search(const struct user_step *step)
{
	struct judge_entry *entry = make_entry(step);

	if (!entry)
		return;
	judge_search(entry, step->remove);
	t_eq(PtlMESearch(run.ni, run.pt, &entry->me,
			 step->remove ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY, entry),
	     PTL_OK);
}

static void unlink_entry(struct judge_entry *entry)
{
	int rc;

	if (!entry || !entry->handle)
		return;
	run.unlinking = entry;
	run.was_removed = false;
	if (entry->list == PTL_OVERFLOW_LIST && judge_may_unlink(entry))
		on_removed();
	rc = PtlMEUnlink(entry->handle);
	run.unlinking = NULL;
	SIM_TRACE("      unlinking returns %d", rc);
	if (run.was_removed) {
		t_eq(rc, PTL_OK);
		paths->unlinked++;
		return;
	}
	t_true(rc == PTL_IN_USE || rc == PTL_ARG_INVALID, "PtlMEUnlink() returned %d", rc);
	t_true(rc != PTL_ARG_INVALID || !entry->linked, "an entry is unknown");
	t_true(!judge_may_unlink(entry), "an entry can't be unlinked");
	paths->in_use += entry->linked;
	paths->gone += !entry->linked;
}

static void user(const struct user_step *step)
{
	static const char *const names[] = {"append", "search", "unlink", "disable", "enable"};

	SIM_TRACE("%s: entry %u, list %u, options %x, bits %u/%u, from %d, %llu bytes",
		  names[step->what], step->entry, step->list, step->options, step->bits,
		  step->ignore, step->from, (unsigned long long)step->length);
	contract_blocking = step->what != APPEND && step->what != SEARCH;
	switch (step->what) {
	case APPEND:
		append(step);
		break;
	case SEARCH:
		search(step);
		break;
	case UNLINK:
		unlink_entry(judge_entry(step->entry));
		break;
	case DISABLE:
		judge_enable(false);
		t_eq(PtlPTDisable(run.ni, run.pt), PTL_OK);
		run.closed = true;
		break;
	case ENABLE:
		if (judge_awaits_disabled())
			break;
		t_eq(PtlPTEnable(run.ni, run.pt), PTL_OK);
		judge_enable(true);
		run.closed = false;
		break;
	}
	contract_blocking = false;
}

/* ---- a run ---- */

static void send(const struct put_step *step)
{
	struct judge_put *put = judge_put_new();
	struct contract_message message = {
		.id = put->id,
		.from = step->from,
		.bits = wide(step->bits),
		.len = step->length,
		.matched = step->offset,
	};
	const struct p4_wire_request wire = {
		.hdr_data = put->id,
		.remote_offset = step->offset,
		.rlength = step->length,
		.cookie = step->quiet ? 0 : put->id + 1,
		.uid = geteuid(),
		.nid = contract_locator(step->from).port,
		.pid = contract_locator(step->from).number,
		.kind = P4_PUT,
		.ack_req = step->quiet ? PTL_NO_ACK_REQ : PTL_ACK_REQ,
	};

	put->from = step->from;
	put->bits = message.bits;
	put->length = step->length;
	put->remote_offset = step->offset;
	put->acked = !step->quiet;
	memcpy(message.header, &wire, sizeof(wire));
	for (ptl_size_t i = 0; i < step->length; i++)
		message.data[i] = judge_byte(put->id, i);
	contract_send(run.pt, &message);
}

static void start(const struct program *program)
{
	ptl_ni_limits_t limits = {
		.max_entries = 100,
		.max_unexpected_headers = program->max_headers ? program->max_headers : 100,
		.max_mds = 1,
		.max_cts = 1,
		.max_eqs = 1,
		.max_pt_index = 10,
		.max_list_size = 100,
		.max_msg_size = 1000,
	};

	memset(&run, 0, sizeof(run));
	run.program = program;
	contract_start(schedule, &ops);
	judge_start(program->flow, limits.max_unexpected_headers);
	t_eq(PtlInit(), PTL_OK);
	t_eq(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &limits,
		       &limits, &run.ni),
	     PTL_OK);
	contract_introduce();
	t_eq(PtlEQAlloc(run.ni, 500, &run.eq), PTL_OK);
	t_eq(PtlPTAlloc(run.ni, program->flow ? PTL_PT_FLOWCTRL : 0, run.eq, PT, &run.pt), PTL_OK);
	for (unsigned i = 0; i < PUTS_MOST && program->puts[i].from; i++)
		send(&program->puts[i]);
}

static void settle(void)
{
	unsigned n;

	while ((n = contract_steps())) {
		contract_step(schedule_choose(schedule, n));
		drain();
	}
}

/* Takes what waits, and unlinks what is left. */
static void finish(void)
{
	const struct user_step all = {.what = SEARCH, .ignore = 3, .remove = true};
	struct judge_entry *entry;
	ptl_sr_value_t dropped;
	unsigned refused;

	user(&all);
	drain();
	settle();
	for (unsigned i = 0; (entry = judge_entry(i)); i++) {
		contract_blocking = true;
		if (entry->linked)
			unlink_entry(entry);
		contract_blocking = false;
	}
	drain();
	refused = judge_end();
	paths->refused += refused;
	t_eq(PtlNIStatus(run.ni, PTL_SR_DROP_COUNT, &dropped), PTL_OK);
	t_eq(dropped, refused);
	t_eq(PtlPTFree(run.ni, run.pt), PTL_OK);
	t_eq(PtlEQFree(run.eq), PTL_OK);
	t_eq(PtlNIFini(run.ni), PTL_OK);
	PtlFini();
	contract_stop();
}

/* Returns true if the next step is the user's; otherwise *which is that of libtupleq. */
static bool choose(bool has_user, unsigned *which)
{
	unsigned n = contract_steps();

	if (!schedule->exhaustive && has_user && n && schedule_choose(schedule, 4) < schedule->pace)
		return true;
	*which = schedule_choose(schedule, n + has_user);
	return has_user && *which == n;
}

static void play(const struct program *program, unsigned nuser)
{
	unsigned which;

	start(program);
	while (run.nuser < nuser || contract_steps()) {
		if (choose(run.nuser < nuser, &which))
			user(&program->user[run.nuser++]);
		else
			contract_step(which);
		drain();
	}
	finish();
}

/* ---- random programs ---- */

/* Returns a step of the user; with `exact` most entries are such as the HCA matches. */
static struct user_step random_step(struct sim_rng *rng, bool exact)
{
	static const enum what whats[] = {APPEND, APPEND,  APPEND, APPEND, APPEND, APPEND,
					  APPEND, APPEND,  SEARCH, SEARCH, UNLINK, UNLINK,
					  UNLINK, DISABLE, ENABLE, ENABLE};
	struct user_step step = {
		.what = whats[sim_below(rng, sizeof(whats) / sizeof(whats[0]))],
		.entry = sim_below(rng, 8),
		.remove = sim_below(rng, 2),
		.bits = sim_below(rng, 4),
		.ignore = (unsigned)SIM_ONE_OF(rng, 0, 0, 1, 2, 3, 3),
		.from = (int)SIM_ONE_OF(rng, 0, 0, 1, 1, 2, 3),
		.length = (ptl_size_t)SIM_ONE_OF(rng, 64, 64, 30, 8, 0),
	};

	if (exact && sim_below(rng, 4)) {
		step.what = APPEND;
		step.options = PTL_ME_USE_ONCE;
		step.from = 1 + (int)sim_below(rng, 2);
		step.bits = sim_below(rng, 2);
		step.ignore = 0;
		return step;
	}
	if (step.what == SEARCH && sim_below(rng, 2))
		step.options = PTL_ME_USE_ONCE;
	if (step.what != APPEND)
		return step;
	step.list = sim_below(rng, 3) ? PTL_PRIORITY_LIST : PTL_OVERFLOW_LIST;
	if (sim_below(rng, 2))
		step.options |= PTL_ME_USE_ONCE;
	if (sim_below(rng, 3) == 0) {
		step.options |= PTL_ME_MANAGE_LOCAL;
		step.min_free = (ptl_size_t)SIM_ONE_OF(rng, 0, 4, 20, 50);
		if (sim_below(rng, 3) == 0)
			step.options |= PTL_ME_LOCAL_INC_UH_RLENGTH;
	}
	if (sim_below(rng, 8) == 0)
		step.options |= PTL_ME_NO_TRUNCATE;
	if (step.list == PTL_OVERFLOW_LIST && sim_below(rng, 8) == 0)
		step.options |= PTL_ME_UNEXPECTED_HDR_DISABLE;
	return step;
}

static void random_run(void *arg, uint64_t seed)
{
	struct program program = {.name = "random"};
	unsigned nuser, nputs;
	bool exact;
	struct sim_rng *rng = &schedule->rng;

	(void)arg;
	sim_seed(rng, seed);
	nuser = 1 + sim_below(rng, USER_MOST);
	nputs = 1 + sim_below(rng, PUTS_MOST);
	schedule->pace = sim_below(rng, 4);
	exact = sim_below(rng, 2);
	program.flow = sim_below(rng, 4) == 0;
	program.max_headers = (int)SIM_ONE_OF(rng, 0, 0, 1, 3);
	for (unsigned i = 0; i < nuser; i++)
		program.user[i] = random_step(rng, exact);
	if (sim_below(rng, 2))
		program.user[0] = (struct user_step){.list = PTL_OVERFLOW_LIST,
						     .options = PTL_ME_MANAGE_LOCAL,
						     .ignore = 3,
						     .length = 64};
	for (unsigned i = 0; i < nputs; i++) {
		program.puts[i] = (struct put_step){
			.from = 1 + (int)sim_below(rng, exact ? 2 : CONTRACT_PROCESSES - 1),
			.bits = sim_below(rng, exact ? 2 : 4),
			.length = (ptl_size_t)SIM_ONE_OF(rng, 0, 1, 8, 20, 40),
			.offset = (ptl_size_t)SIM_ONE_OF(rng, 0, 0, 0, 3),
			.quiet = sim_below(rng, 3) == 0,
		};
	}
	play(&program, nuser);
}

static bool covered(void)
{
	bool ok = true;

	printf("#");
#define X(name)                                                      \
	printf(" %s %llu;", #name, (unsigned long long)paths->name); \
	ok &= paths->name > 0;
	PATHS(X)
#undef X
	printf("\n%s random coverage\n", ok ? "ok" : "not ok");
	return ok;
}

static bool random_runs(uint64_t seed, uint64_t runs)
{
	struct runner_result res = runner_go(random_run, NULL, seed, seed + runs, 1, 10);

	if (res.failed) {
		printf("not ok random schedules - seed %llu: %s (--trace %llu)\n",
		       (unsigned long long)res.first, res.why, (unsigned long long)res.first);
		return false;
	}
	printf("ok random schedules (%llu runs)\n", (unsigned long long)res.runs);
	return runs < 1000 || covered();
}

/* ---- all schedules of small programs ---- */

#define OVER(...)                                                                 \
	{                                                                         \
		.list = PTL_OVERFLOW_LIST, .length = 64, .ignore = 3, __VA_ARGS__ \
	}
#define ENTRY(...)                        \
	{                                 \
		.length = 64, __VA_ARGS__ \
	}

static const struct program programs[] = {
	{
		.name = "entries that the HCA matches, and one for any process",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.options = PTL_ME_USE_ONCE, .ignore = 3),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.what = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 8}, {.from = 1}},
	},
	{
		.name = "an entry is unlinked",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.what = UNLINK, .entry = 1}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
	},
	{
		.name = "unexpected, then found by an entry that is used once",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 ENTRY(.bits = 1, .options = PTL_ME_USE_ONCE),
			 {.what = UNLINK}},
		.puts = {{.from = 1, .bits = 1, .length = 8},
			 {.from = 1, .length = 4},
			 {.from = 2, .bits = 1}},
	},
	{
		.name = "an entry that stays finds what waits",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL), ENTRY(.ignore = 3)},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}, {.from = 1}},
	},
	{
		.name = "overflow entries are used up",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL, .min_free = 50),
			 OVER(.options = PTL_ME_MANAGE_LOCAL, .min_free = 50),
			 {.what = SEARCH, .ignore = 3, .remove = true}},
		.puts = {{.from = 1, .length = 8},
			 {.from = 1, .length = 20},
			 {.from = 2, .length = 1}},
	},
	{
		.name = "searches",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 {.what = SEARCH, .ignore = 3},
			 {.what = SEARCH, .ignore = 3, .options = PTL_ME_USE_ONCE, .remove = true}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}},
	},
	{
		.name = "disabled and enabled",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.what = DISABLE},
			 {.what = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
	},
	{
		.name = "flow control",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.what = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}, {.from = 1}},
		.flow = true,
	},
	{
		.name = "one unexpected header, with flow control",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 {.what = SEARCH, .ignore = 3, .remove = true},
			 {.what = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
		.flow = true,
		.max_headers = 1,
	},
	{
		.name = "messages that are not to be truncated",
		.user = {{.length = 4, .options = PTL_ME_USE_ONCE | PTL_ME_NO_TRUNCATE},
			 {.length = 12, .options = PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE},
			 ENTRY(.options = PTL_ME_USE_ONCE)},
		.puts = {{.from = 1, .length = 8},
			 {.from = 1, .length = 4},
			 {.from = 2, .length = 8}},
	},
};

static unsigned user_steps(const struct program *program)
{
	unsigned n = USER_MOST;

	/* A step that isn't there is an entry without memory for nobody's messages. */
	while (n && !program->user[n - 1].what && !program->user[n - 1].length)
		n--;
	return n;
}

struct shared {
	uint64_t limit, schedules;
	struct schedule schedule;
};
static struct shared *shared;

static void all_schedules(void *arg, uint64_t i)
{
	const struct program *program = arg;

	(void)i;
	do {
		play(program, user_steps(program));
		shared->schedules++;
	} while (schedule_next(schedule) && shared->schedules < shared->limit);
}

static bool explore(const struct program *program)
{
	struct program copy = *program;
	struct runner_result res;

	memset(schedule, 0, sizeof(*schedule));
	schedule->exhaustive = true;
	shared->schedules = 0;
	res = runner_go(all_schedules, &copy, 0, 1, 1, 600);
	if (res.failed) {
		printf("not ok %s - schedule %llu: %s\n", program->name,
		       (unsigned long long)shared->schedules, res.why);
		sim_tracing = true;
		schedule->fixed = schedule->depth;
		schedule->depth = 0;
		play(program, user_steps(program));
		return false;
	}
	printf("ok %s (%llu schedules%s)\n", program->name, (unsigned long long)shared->schedules,
	       shared->schedules < shared->limit ? "" : ", not all");
	return true;
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000, seed = 1;
	bool ok = true;

	shared = runner_shared(sizeof(*shared));
	paths = runner_shared(sizeof(*paths));
	schedule = &shared->schedule;
	shared->limit = 100000;
	setenv("PORTALS_LOG", "none", 1);
	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t n = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--runs")) {
			runs = n;
		} else if (!strcmp(argv[i], "--seed")) {
			seed = n;
		} else if (!strcmp(argv[i], "--limit")) {
			shared->limit = n;
		} else if (!strcmp(argv[i], "--trace")) {
			sim_tracing = true;
			random_run(NULL, n);
			return 0;
		}
	}
	ok &= random_runs(seed, runs);
	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		ok &= explore(&programs[i]);
	return !ok;
}
