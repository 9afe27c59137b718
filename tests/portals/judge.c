/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - see judge.h. */
#include "judge.h"

#include <string.h>

#include "../transport/sim.h"

static struct {
	bool flow, enabled;
	int max_headers, nheaders;
	int disabled_due; /* PTL_EVENT_PT_DISABLED */
	struct judge_entry entries[JUDGE_ENTRIES];
	unsigned nentries;
	struct judge_entry *lists[2];
	struct judge_put puts[JUDGE_PUTS];
	unsigned nputs;
	unsigned waiting[JUDGE_PUTS]; /* the unexpected list */
	unsigned nwaiting;
} judge;

void judge_start(bool flow, int max_headers)
{
	memset(&judge, 0, sizeof(judge));
	judge.flow = flow;
	judge.enabled = true;
	judge.max_headers = max_headers;
}

struct judge_entry *judge_entry_new(void)
{
	struct judge_entry *entry;

	if (judge.nentries == JUDGE_ENTRIES)
		return NULL;
	entry = &judge.entries[judge.nentries++];
	memset(entry->room, 0xee, sizeof(entry->room));
	return entry;
}

struct judge_entry *judge_entry(unsigned i)
{
	return i < judge.nentries ? &judge.entries[i] : NULL;
}

struct judge_put *judge_put_new(void)
{
	struct judge_put *put;

	if (judge.nputs == JUDGE_PUTS)
		return NULL;
	put = &judge.puts[judge.nputs];
	put->id = judge.nputs++;
	return put;
}

struct judge_put *judge_put(unsigned id)
{
	t_true(id < judge.nputs, "there is no put %u", id);
	return &judge.puts[id];
}

uint8_t judge_byte(unsigned id, ptl_size_t offset)
{
	return (uint8_t)(id * 37 + offset + 1);
}

static unsigned number(const struct judge_entry *entry)
{
	return (unsigned)(entry - judge.entries);
}

/* ---- the rules ---- */

static bool has(const struct judge_entry *entry, unsigned option)
{
	return entry->me.options & option;
}

static ptl_size_t room_at(const struct judge_entry *entry, const struct judge_put *put,
			  ptl_size_t *offset)
{
	*offset = has(entry, PTL_ME_MANAGE_LOCAL) ? entry->offset : put->remote_offset;
	return *offset < entry->me.length ? entry->me.length - *offset : 0;
}

static bool fits(const struct judge_entry *entry, const struct judge_put *put)
{
	ptl_size_t offset;

	if ((entry->me.match_bits ^ put->bits) & ~entry->me.ignore_bits)
		return false;
	if (entry->from && entry->from != put->from)
		return false;
	return !has(entry, PTL_ME_NO_TRUNCATE) || put->length <= room_at(entry, put, &offset);
}

static void unlink_from_list(struct judge_entry *entry)
{
	struct judge_entry **at = &judge.lists[entry->list];

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	entry->linked = false;
}

static bool is_used_up(const struct judge_entry *entry)
{
	return has(entry, PTL_ME_MANAGE_LOCAL) && entry->me.min_free &&
	       entry->me.length - entry->offset < entry->me.min_free;
}

static void take(struct judge_put *put, struct judge_entry *entry)
{
	ptl_size_t room = room_at(entry, put, &put->offset);

	put->taker = entry;
	put->mlength = put->length < room ? put->length : room;
	if (has(entry, PTL_ME_MANAGE_LOCAL))
		entry->offset += put->mlength;
	if (has(entry, PTL_ME_USE_ONCE) || is_used_up(entry)) {
		entry->unlink_due = true;
		entry->free_due = entry->list == PTL_OVERFLOW_LIST;
		unlink_from_list(entry);
	}
}

static struct judge_entry *first_that_fits(ptl_list_t list, const struct judge_put *put)
{
	struct judge_entry *entry;

	for (entry = judge.lists[list]; entry; entry = entry->next) {
		if (fits(entry, put))
			return entry;
	}
	return NULL;
}

/* Refuses a put that finds no entry, or no room for its unexpected header. */
static void refuse(struct judge_put *put)
{
	put->fail = PTL_NI_DROPPED;
	if (!judge.flow)
		return;
	put->fail = PTL_NI_PT_DISABLED;
	judge.enabled = false;
	judge.disabled_due++;
}

void judge_arrives(struct judge_put *put, const struct judge_entry *by_hca, bool recalling)
{
	struct judge_entry *entry = first_that_fits(PTL_PRIORITY_LIST, put);

	t_true(!put->arrived, "put %u arrives twice", put->id);
	put->arrived = true;
	if (by_hca) {
		t_true(entry == by_hca, "the HCA matched put %u to entry %u", put->id,
		       number(by_hca));
		t_true(judge.enabled || recalling, "the HCA matched put %u, which is refused",
		       put->id);
		take(put, entry);
		return;
	}
	if (!judge.enabled) {
		put->fail = PTL_NI_PT_DISABLED;
		return;
	}
	if (entry) {
		take(put, entry);
		return;
	}
	entry = first_that_fits(PTL_OVERFLOW_LIST, put);
	if (!entry ||
	    (!has(entry, PTL_ME_UNEXPECTED_HDR_DISABLE) && judge.nheaders >= judge.max_headers)) {
		refuse(put);
		return;
	}
	take(put, entry);
	if (has(entry, PTL_ME_UNEXPECTED_HDR_DISABLE))
		return;
	put->waits = true;
	judge.nheaders++;
	judge.waiting[judge.nwaiting++] = put->id;
}

/* Gives an entry a put from the unexpected list. */
static void find(struct judge_entry *entry, unsigned at)
{
	struct judge_put *put = &judge.puts[judge.waiting[at]];

	put->waits = false;
	put->finder = entry;
	if (put->stored)
		judge.nheaders--;
	memmove(&judge.waiting[at], &judge.waiting[at + 1],
		(judge.nwaiting - at - 1) * sizeof(judge.waiting[0]));
	judge.nwaiting--;
}

void judge_stored(struct judge_put *put)
{
	put->stored = true;
	if (put->finder)
		judge.nheaders--;
}

void judge_append(struct judge_entry *entry)
{
	struct judge_entry **end = &judge.lists[entry->list];

	for (unsigned i = 0; entry->list == PTL_PRIORITY_LIST && i < judge.nwaiting;) {
		const struct judge_put *put = &judge.puts[judge.waiting[i]];
		bool counts;

		if (!fits(entry, put)) {
			i++;
			continue;
		}
		find(entry, i);
		counts = has(entry, PTL_ME_MANAGE_LOCAL) && has(entry, PTL_ME_LOCAL_INC_UH_RLENGTH);
		if (counts)
			entry->offset = entry->offset + put->length < entry->me.length
						? entry->offset + put->length
						: entry->me.length;
		if (has(entry, PTL_ME_USE_ONCE) || (counts && is_used_up(entry))) {
			entry->unlink_due = true;
			entry->last_found = put;
			return;
		}
	}
	while (*end)
		end = &(*end)->next;
	*end = entry;
	entry->linked = true;
	entry->link_due = true;
}

void judge_search(struct judge_entry *entry, bool remove)
{
	bool any = false;

	for (unsigned i = 0; i < judge.nwaiting;) {
		if (!fits(entry, &judge.puts[judge.waiting[i]])) {
			i++;
			continue;
		}
		any = true;
		if (remove)
			find(entry, i);
		else
			entry->found[entry->nfound++] = judge.waiting[i++];
		if (has(entry, PTL_ME_USE_ONCE))
			return;
	}
	entry->nomatch_due = !any;
}

/* Returns true if a put that the entry has taken still needs the entry: its header is unexpected,
 * or another entry has found the header and the data are still to come. */
static bool is_needed(const struct judge_entry *entry)
{
	for (unsigned i = 0; i < judge.nputs; i++) {
		const struct judge_put *put = &judge.puts[i];

		if (put->taker == entry && (put->waits || (put->finder && !put->stored)))
			return true;
	}
	return false;
}

bool judge_may_unlink(const struct judge_entry *entry)
{
	return entry->linked && !is_needed(entry);
}

void judge_unlink(struct judge_entry *entry)
{
	t_true(entry->linked, "entry %u is unlinked, but it isn't in its list", number(entry));
	unlink_from_list(entry);
}

void judge_enable(bool enabled)
{
	judge.enabled = enabled;
}

bool judge_awaits_disabled(void)
{
	return judge.disabled_due;
}

/* ---- events and answers ---- */

/* Checks the data of a put, unless another one may have overwritten them. */
static void check_data(const struct judge_put *put, const void *start)
{
	const struct judge_entry *entry = put->taker;
	const uint8_t *bytes = start;

	t_true(bytes == entry->room + put->offset || !put->mlength, "put %u is at another place",
	       put->id);
	if (!has(entry, PTL_ME_MANAGE_LOCAL | PTL_ME_USE_ONCE))
		return;
	for (ptl_size_t i = 0; i < put->mlength; i++)
		t_true(bytes[i] == judge_byte(put->id, i), "byte %d of put %u is wrong", (int)i,
		       put->id);
}

static struct judge_put *check_put(const ptl_event_t *event, int from)
{
	struct judge_put *put = judge_put((unsigned)event->hdr_data);

	t_true(put->arrived && event->match_bits == put->bits && event->rlength == put->length &&
		       event->mlength == put->mlength && event->remote_offset == put->remote_offset,
	       "the event of put %u: bits %llx, %llu of %llu bytes", put->id,
	       (unsigned long long)event->match_bits, (unsigned long long)event->mlength,
	       (unsigned long long)event->rlength);
	t_true(from == put->from, "put %u is of process %d, not %d", put->id, put->from, from);
	t_true(event->ni_fail_type == PTL_NI_OK, "put %u failed", put->id);
	return put;
}

static void see_put(struct judge_entry *entry, const ptl_event_t *event, int from)
{
	struct judge_put *put = check_put(event, from);

	t_true(put->taker == entry && !put->event, "put %u came to entry %u", put->id,
	       number(entry));
	t_true(event->ptl_list == entry->list, "put %u came to another list", put->id);
	t_true(entry->link_event || !entry->link_due, "put %u came before entry %u was linked",
	       put->id, number(entry));
	put->event = true;
	check_data(put, event->start);
}

static void see_overflow(struct judge_entry *entry, const ptl_event_t *event, int from)
{
	struct judge_put *put = check_put(event, from);

	t_true(put->finder == entry && !put->overflow_event, "entry %u has found put %u",
	       number(entry), put->id);
	t_true(put->event, "put %u was found before its event", put->id);
	put->overflow_event = true;
	check_data(put, event->start);
}

static void see_search(struct judge_entry *entry, const ptl_event_t *event, int from)
{
	if (event->ni_fail_type == PTL_NI_NO_MATCH) {
		t_true(entry->nomatch_due-- > 0, "search %u finds nothing", number(entry));
		return;
	}
	t_true(entry->found_events < entry->nfound &&
		       entry->found[entry->found_events++] == check_put(event, from)->id,
	       "search %u has found put %u", number(entry), (unsigned)event->hdr_data);
}

/* Checks that no event of a put that the entry has taken or found follows the entry's end. */
static void check_ended(const struct judge_entry *entry)
{
	for (unsigned i = 0; i < judge.nputs; i++) {
		const struct judge_put *put = &judge.puts[i];

		t_true(put->taker != entry || put->event, "entry %u ended before put %u",
		       number(entry), i);
		t_true(put->finder != entry || put->overflow_event,
		       "entry %u ended before put %u, which it has found", number(entry), i);
	}
}

/* Checks that all puts that an overflow entry has taken were found before the entry was freed. */
static void check_all_found(const struct judge_entry *entry)
{
	for (unsigned i = 0; i < judge.nputs; i++) {
		const struct judge_put *put = &judge.puts[i];

		t_true(put->taker != entry ||
			       (!put->waits && (put->overflow_event || !put->finder)),
		       "entry %u was freed before put %u", number(entry), i);
	}
}

/* Checks that the overflow entry whose last header the entry has found was freed before. */
static void check_freed(const struct judge_entry *entry)
{
	const struct judge_entry *taker = entry->last_found ? entry->last_found->taker : NULL;

	if (!taker || !taker->free_due || is_needed(taker))
		return;
	for (unsigned i = 0; i < judge.nputs; i++) {
		if (judge.puts[i].taker == taker && !judge.puts[i].stored)
			return;
	}
	t_true(taker->free_event, "entry %u ended before entry %u was freed", number(entry),
	       number(taker));
}

void judge_event(const ptl_event_t *event, int from)
{
	struct judge_entry *entry = event->user_ptr;

	if (event->type == PTL_EVENT_PT_DISABLED) {
		t_true(judge.disabled_due-- > 0, "the portal table entry was not disabled");
		return;
	}
	t_true(entry && number(entry) < judge.nentries, "an event of no entry");
	SIM_TRACE("      event %d of entry %u, put %u", event->type, number(entry),
		  (unsigned)event->hdr_data);
	switch (event->type) {
	case PTL_EVENT_LINK:
		t_true(entry->link_due && !entry->link_event && !entry->unlink_event,
		       "entry %u is linked", number(entry));
		entry->link_event = true;
		break;
	case PTL_EVENT_PUT:
		see_put(entry, event, from);
		break;
	case PTL_EVENT_PUT_OVERFLOW:
		see_overflow(entry, event, from);
		break;
	case PTL_EVENT_SEARCH:
		see_search(entry, event, from);
		break;
	case PTL_EVENT_AUTO_UNLINK:
		t_true(entry->unlink_due && !entry->unlink_event, "entry %u is unlinked",
		       number(entry));
		entry->unlink_event = true;
		check_ended(entry);
		check_freed(entry);
		break;
	case PTL_EVENT_AUTO_FREE:
		t_true(entry->free_due && !entry->free_event && entry->unlink_event,
		       "entry %u is freed", number(entry));
		entry->free_event = true;
		check_all_found(entry);
		break;
	default:
		t_fail("event %d of entry %u", event->type, number(entry));
	}
}

void judge_answer(struct judge_put *put, ptl_ni_fail_t fail, ptl_size_t mlength, ptl_size_t offset,
		  ptl_list_t list)
{
	t_true(put->acked && put->arrived && !put->answer, "put %u is answered", put->id);
	put->answer = true;
	t_true(fail == put->fail, "put %u is answered with %d, not %d", put->id, fail, put->fail);
	if (fail)
		return;
	t_true(mlength == put->mlength && offset == put->offset && list == put->taker->list,
	       "put %u is answered: %llu bytes at %llu", put->id, (unsigned long long)mlength,
	       (unsigned long long)offset);
	check_data(put, put->taker->room + offset);
}

static void check_entry(const struct judge_entry *entry)
{
	unsigned n = number(entry);

	t_true(entry->link_due == entry->link_event, "event LINK of entry %u is missing", n);
	t_true(entry->unlink_due == entry->unlink_event, "event AUTO_UNLINK of entry %u is missing",
	       n);
	t_true(entry->free_due == entry->free_event || is_needed(entry),
	       "event AUTO_FREE of entry %u is missing", n);
	t_true(!entry->nomatch_due && entry->found_events == entry->nfound,
	       "search %u says nothing", n);
	for (unsigned i = 0; i < 8; i++)
		t_true(entry->room[entry->me.length + i] == 0xee,
		       "entry %u was written to behind its end", n);
}

unsigned judge_end(void)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < judge.nputs; i++) {
		const struct judge_put *put = &judge.puts[i];

		t_true(put->arrived, "put %u has not arrived", i);
		t_true(put->event == !put->fail, "the event of put %u is missing", i);
		t_true(!put->finder || put->overflow_event, "put %u was found without an event", i);
		t_true(put->answer == put->acked, "the answer to put %u is missing", i);
		refused += put->fail != PTL_NI_OK;
	}
	for (unsigned i = 0; i < judge.nentries; i++)
		check_entry(&judge.entries[i]);
	t_true(!judge.disabled_due, "event PT_DISABLED is missing");
	return refused;
}
