/* SPDX-License-Identifier: BSD-3-Clause */
/* lists.c - see lists.h. */
#include "lists.h"

#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "entry.h"
#include "judge.h"
#include "played.h"
#include "wire.h"

#define PT 5

struct paths *lists_paths;
struct schedule *lists_schedule;

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_pt_index_t pt;
	unsigned nuser;
	struct judge_entry *unlinking;
	bool was_removed;
	bool closed; /* PtlPTDisable() has returned */
} run;

/* ---- reports of the model of libtupleq ---- */

static void on_arrival(unsigned id, const void *by_hca)
{
	const struct judge_entry *entry =
		by_hca ? ((const struct p4_entry *)by_hca)->user_ptr : NULL;

	SIM_TRACE("      put %u arrives%s", id, by_hca ? ", matched by the HCA" : "");
	if (by_hca)
		lists_paths->by_hca++;
	else
		lists_paths->by_library++;
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
		lists_paths->ended += event.type == PTL_EVENT_AUTO_UNLINK;
		lists_paths->freed += event.type == PTL_EVENT_AUTO_FREE;
		lists_paths->waited += event.type == PTL_EVENT_PUT_OVERFLOW;
		lists_paths->searched += event.type == PTL_EVENT_SEARCH && !event.ni_fail_type;
		lists_paths->disabled += event.type == PTL_EVENT_PT_DISABLED;
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
		id.phys.nid = played_locator(step->from).port;
		id.phys.pid = played_locator(step->from).number;
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
		lists_paths->unlinked++;
		return;
	}
	t_true(rc == PTL_IN_USE || rc == PTL_ARG_INVALID, "PtlMEUnlink() returned %d", rc);
	t_true(rc != PTL_ARG_INVALID || !entry->linked, "an entry is unknown");
	t_true(!judge_may_unlink(entry), "an entry can't be unlinked");
	lists_paths->in_use += entry->linked;
	lists_paths->gone += !entry->linked;
}

static void user(const struct user_step *step)
{
	static const char *const names[] = {"append", "search", "unlink", "disable", "enable"};

	SIM_TRACE("%s: entry %u, list %u, options %x, bits %u/%u, from %d, %llu bytes",
		  names[step->action], step->entry, step->list, step->options, step->bits,
		  step->ignore, step->from, (unsigned long long)step->length);
	contract_blocking = step->action != APPEND && step->action != SEARCH;
	switch (step->action) {
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
		.nid = played_locator(step->from).port,
		.pid = played_locator(step->from).number,
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
	contract_start(lists_schedule, &ops);
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
		contract_step(schedule_choose(lists_schedule, n));
		drain();
	}
}

/* Takes the waiting puts, and unlinks the entries that are left. */
static void finish(void)
{
	const struct user_step all = {.action = SEARCH, .ignore = 3, .remove = true};
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
	lists_paths->refused += refused;
	t_eq(PtlNIStatus(run.ni, PTL_SR_DROP_COUNT, &dropped), PTL_OK);
	t_eq(dropped, refused);
	t_eq(PtlPTFree(run.ni, run.pt), PTL_OK);
	t_eq(PtlEQFree(run.eq), PTL_OK);
	t_eq(PtlNIFini(run.ni), PTL_OK);
	PtlFini();
	contract_stop();
}

/* Returns true if the next step is the user's; otherwise *which is a step of libtupleq. */
static bool choose(bool has_user, unsigned *which)
{
	unsigned n = contract_steps();

	if (!lists_schedule->exhaustive && has_user && n &&
	    schedule_choose(lists_schedule, 4) < lists_schedule->pace)
		return true;
	*which = schedule_choose(lists_schedule, n + has_user);
	return has_user && *which == n;
}

void lists_play(const struct program *program, unsigned nuser)
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
