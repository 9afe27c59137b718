/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stub.h - a libtupleq for unit tests of libportals that does nothing of its own: calls are
 * recorded, and the test reports what happens in the network. Process 0 is this one.
 */
#ifndef PORTALS_STUB_H
#define PORTALS_STUB_H

#include <portals4.h>
#include <tupleq/look_up.h>
#include <tupleq/match.h>

#include "ptl.h"
#include "wire.h"

#define STUB_PROCESSES 4
#define STUB_PTS       64
#define STUB_REPLY     STUB_PTS /* the number of the context of answers */
#define STUB_PT        4        /* the portal table entry that is allocated */
#define STUB_MOST      16

/* A message that libportals has sent. */
struct stub_sent {
	unsigned ctx;
	int to; /* process */
	uint8_t header[TQ_HEADER_MAX];
	struct tq_buf buf;
	void *user;
};

/* An entry that libportals has appended. */
struct stub_entry {
	unsigned ctx;
	int from; /* process; -1: any */
	void *user;
};

struct stub {
	struct stub_sent sent[STUB_MOST];
	unsigned nsent;
	struct stub_entry entries[STUB_MOST];
	unsigned nentries;
	unsigned nlook_ups; /* calls of tq_look_up() */
	bool slow_sends;    /* a send ends with stub_end_send(), and not at once */
	/* Called by tq_peer_add(), when messages of the process may come; NULL: nothing comes. */
	void (*added)(int process);
	/* Called by tq_entry_append() before it returns; NULL: nothing happens. */
	void (*appended)(const struct stub_entry *entry);
	/* Called by tq_progress() before it returns; NULL: nothing happens. */
	void (*progress)(void);
};
extern struct stub stub;

/* An interface with matching and physical ids, and an event queue for its portal table entry. */
struct stub_side {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
};

/* Forgets all records, and opens an interface. */
struct stub_side stub_open(void);
void stub_close(const struct stub_side *side);
/* Takes an event, which has to be of this type and to have ended like this. */
ptl_event_t stub_event(const struct stub_side *side, ptl_event_kind_t type, ptl_ni_fail_t fail);
/* Expects that there is no event. */
void stub_no_event(const struct stub_side *side);
/* Returns an entry without bits for puts and gets of any process, whose only events are those of
 * messages. */
ptl_me_t stub_me(void *start, size_t length, unsigned options);
/* Appends an entry. Returns libtupleq's record of it, NULL for the overflow list. */
const struct stub_entry *stub_append(const struct stub_side *side, const ptl_me_t *me,
				     ptl_list_t list, ptl_handle_me_t *handle);
/* Returns the id of a process. */
ptl_process_t stub_id(int process);

/* Ends the look-up of a process. */
void stub_found(int process, int error);
/* Ends a send that did not end at once. */
void stub_end_send(const struct stub_sent *sent, int error);

/* Returns a request of a process. */
struct p4_wire_request stub_request(int from, enum p4_op_kind kind, uint64_t length);
/* Offers a message of a process to an entry, and returns what match() decides. */
enum tq_verdict stub_match(const struct stub_entry *entry, int from, uint64_t bits,
			   const void *header, uint64_t length, struct tq_take *take);
/* Offers a message to unexpected(). */
enum tq_disposition stub_unexpected(unsigned ctx, int from, uint64_t bits, const void *header,
				    uint64_t length, struct tq_take *take);
/* Offers an unexpected message to an entry; `taken` is the user of its struct tq_take. */
enum tq_verdict stub_match_taken(const struct stub_entry *entry, int from, uint64_t bits,
				 const void *header, uint64_t length, void *taken,
				 struct tq_take *take);
/* Reports the end of a message's transfer, or that of an entry. */
void stub_done(unsigned ctx, void *user, int error);
/* Reports a message that the HCA has put into an entry's buffer. */
void stub_direct(const struct stub_entry *entry, uint64_t bits, const void *header,
		 uint64_t length);

#endif
