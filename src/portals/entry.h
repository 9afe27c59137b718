/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List entries. Entries of the priority list are in libtupleq's list, which the HCA matches where
 * it can; entries of the overflow list are in a list of the portal table entry. Entries of an
 * interface without matching fit all messages.
 */
#ifndef P4_ENTRY_H
#define P4_ENTRY_H

#include <stdbool.h>

#include <portals4.h>

#include "endpoint.h"
#include "region.h"

struct p4_pt;
struct p4_wire_request;

enum p4_entry_state {
	P4_ENTRY_NEW,     /* not in its list yet; a search always */
	P4_ENTRY_LINKED,  /* in its list */
	P4_ENTRY_USED_UP, /* a message took it out, so p4_entry_release() posts AUTO_UNLINK */
	P4_ENTRY_REMOVED, /* in no list for another reason */
};

enum p4_search { P4_APPEND, P4_SEARCH_ONLY, P4_SEARCH_DELETE };

struct p4_entry {
	enum p4_tag tag;
	ptl_handle_me_t handle;
	struct p4_pt *pt;
	ptl_list_t list;
	enum p4_search search;
	struct p4_region region;
	unsigned options;
	ptl_handle_ct_t ct;
	ptl_uid_t uid;
	ptl_process_t match_id;
	ptl_match_bits_t match_bits, ignore_bits;
	ptl_size_t min_free;
	void *user_ptr;
	ptl_size_t offset; /* with PTL_ME_MANAGE_LOCAL: of the next message's data */
	tq_entry_id id;    /* priority list */

	enum p4_entry_state state;
	bool link_posted; /* PTL_EVENT_LINK was posted, or isn't wanted */
	bool held;        /* an API call or a triggered operation still uses it */
	unsigned nbusy;   /* messages that it has taken or found, and that have not ended */
	int nheaders;     /* unexpected headers that refer to it */
	unsigned nfound;  /* headers that a search has found */
	struct p4_entry *next, *prev; /* p4_pt.overflow */
};

/* Checks the arguments of PtlMEAppend() or PtlMESearch(), and makes the entry, which is then
 * `held`. Returns a code of Portals. With the lock, as are the functions that don't say otherwise.
 */
int p4_entry_make(struct p4_pt *pt, const ptl_me_t *me, ptl_list_t list, enum p4_search search,
		  void *user_ptr, struct p4_entry **made);
/* Appends the entry, or searches with it, and clears `held`, so that the entry may be freed.
 * Returns a code of Portals. Called without the lock. */
int p4_entry_append(struct p4_entry *entry);
/* Unlinks an entry, and waits, if `wait` is true, for the end of the messages that it has taken;
 * otherwise the entry ends with the last of them. Returns a code of Portals. Called without the
 * lock. */
int p4_entry_unlink(ptl_handle_me_t handle, bool wait);
/* Returns the bytes of the entry that a message may use, from *offset on. */
ptl_size_t p4_entry_room(const struct p4_entry *entry, const struct p4_wire_request *req,
			 ptl_size_t *offset);
/* Returns true if a message fits the entry: its bits, its initiator, and its length. */
bool p4_entry_fits(const struct p4_entry *entry, const struct p4_wire_request *req,
		   ptl_match_bits_t bits);
/* Posts PTL_EVENT_LINK, unless that was done. */
void p4_entry_post_link(struct p4_entry *entry);
/* Posts an event of the entry itself. */
void p4_entry_event(struct p4_entry *entry, ptl_event_kind_t type, ptl_ni_fail_t fail);
/* Takes the entry out of its list and counts, into a state in which it is in no list; does nothing
 * if it has left already, or is a search. libtupleq removes its own part when match() returns
 * TQ_TAKE. */
void p4_entry_leave(struct p4_entry *entry, enum p4_entry_state state);
/* Ends one of the messages that the entry has taken or found. With the last one, an entry that was
 * used up posts PTL_EVENT_AUTO_UNLINK: no event of a message follows it, and its memory is the
 * user's again unless headers refer to it. */
void p4_entry_release(struct p4_entry *entry);
/* Frees the entry when its interface has ended. */
void p4_entry_destroy(struct p4_entry *entry);
/* Frees the entry if nothing refers to it any more. */
void p4_entry_try_free(struct p4_entry *entry);

#endif
