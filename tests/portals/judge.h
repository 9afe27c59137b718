/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - Portals' rules of matching, for one portal table entry: which list entry each put goes
 * to, and which events and answers follow. The rules are independent of libportals: the driver
 * reports each call of the user, arrival, event and answer.
 */
#ifndef PORTALS_JUDGE_H
#define PORTALS_JUDGE_H

#include <stdbool.h>

#include <portals4.h>

#define JUDGE_ENTRIES 32
#define JUDGE_PUTS    32
#define JUDGE_ROOM    64 /* bytes of an entry, at most */

struct judge_put {
	unsigned id;
	int from;
	ptl_match_bits_t bits;
	ptl_size_t length, remote_offset;
	bool acked; /* an acknowledgement is wanted */

	/* By the rules: */
	bool arrived, stored;
	bool waits;                 /* in the unexpected list */
	struct judge_entry *taker;  /* NULL: none took it */
	struct judge_entry *finder; /* took it from the unexpected list */
	ptl_ni_fail_t fail;
	ptl_size_t offset, mlength;
	/* Reported: */
	bool event, overflow_event, answer;
};

struct judge_entry {
	ptl_me_t me;
	int from; /* 0: any process */
	ptl_list_t list;
	ptl_handle_me_t handle;
	uint8_t room[JUDGE_ROOM + 8]; /* the entry's memory, with bytes behind it that stay */
	ptl_size_t offset;
	bool linked;
	bool link_due, unlink_due, free_due; /* events that have to come */
	bool link_event, unlink_event, free_event;
	const struct judge_put *last_found; /* uses the entry up before it is linked */
	int nomatch_due;                    /* events of searches that find nothing */
	unsigned found[JUDGE_PUTS];         /* the puts that a search finds and leaves, in order */
	unsigned nfound, found_events;
	struct judge_entry *next; /* of the list */
};

/* Starts a run; with `flow` the portal table entry has flow control. */
void judge_start(bool flow, int max_headers);
/* Returns a new entry, to be filled in. */
struct judge_entry *judge_entry_new(void);
/* Returns entry number i, or NULL. */
struct judge_entry *judge_entry(unsigned i);
/* Adds a put that is sent now, and returns it. */
struct judge_put *judge_put_new(void);
struct judge_put *judge_put(unsigned id);
/* Returns a byte of the data of a put. */
uint8_t judge_byte(unsigned id, ptl_size_t offset);

/* Applies the user's call that appends an entry, or searches with it. */
void judge_append(struct judge_entry *entry);
void judge_search(struct judge_entry *entry, bool remove);
/* Returns true if the entry may be unlinked now. */
bool judge_may_unlink(const struct judge_entry *entry);
void judge_unlink(struct judge_entry *entry);
void judge_enable(bool enabled);
/* Matches a put that arrives. `by_hca`: the HCA has matched it to this entry. `recalling`: the HCA
 * may still match, although the portal table entry was disabled. */
void judge_arrives(struct judge_put *put, const struct judge_entry *by_hca, bool recalling);
/* Records that the put's data are in memory. */
void judge_stored(struct judge_put *put);

/* Checks an event of the target's queue, or an answer. `from` is the event's initiator. */
void judge_event(const ptl_event_t *event, int from);
void judge_answer(struct judge_put *put, ptl_ni_fail_t fail, ptl_size_t mlength, ptl_size_t offset,
		  ptl_list_t list);
/* Returns true if PTL_EVENT_PT_DISABLED is due. */
bool judge_awaits_disabled(void);
/* Checks that all that was due has come. Returns how many puts were refused. */
unsigned judge_end(void);

#endif
