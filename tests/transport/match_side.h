/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints with a context with match bits. Endpoint 1 sends to endpoint 0, whose calls of
 * done() are recorded.
 */
#ifndef MATCH_SIDE_H
#define MATCH_SIDE_H

#include <stdatomic.h>

#include <tupleq/match.h>

#include "many.h"

#define MATCH_CTX  77
#define MATCH_MOST 64
#define MATCH_LONG (1 << 20)

/* The header that the sender puts in front of its data. */
struct match_header {
	uint64_t number;
	uint64_t filler[3];
};

/* An entry, or a place for messages without one. */
struct match_place {
	const char *name;
	enum tq_verdict verdict;
	enum tq_disposition disposition;
	char *data;
	uint64_t room;
	int asked;
	const void *taken; /* of the last envelope */
};

/* A call of done(). */
struct match_came {
	struct match_place *place;
	struct tq_arrival arrival;
	uint64_t number;
	bool has_header;
};

/* A context at an endpoint, with its calls of done(). */
struct match_side {
	struct tq_ctx *ctx;
	struct match_place left; /* for messages that no entry takes */
	struct match_came came[MATCH_MOST];
	_Atomic int ncame;
	_Atomic int inside; /* calls of done() under way */
	bool nested;
};

extern struct match_side match_sides[2];
extern unsigned match_flags;        /* of the contexts that match_start() makes: TQ_CTX_* */
extern void (*match_in_done)(void); /* called by done() at endpoint 0, unless NULL */
extern char match_data[8][MATCH_LONG];
extern const struct tq_match_ops match_ops;

/* Opens the endpoints, with parameters ("name=value", NULL at the end; NULL: the defaults). */
void match_start(const char *const *params);
/* Opens the endpoints with parameters for each. */
void match_start_each(const char *const *const params[2]);
/* Returns an entry of `room` bytes in match_data[data]. */
struct match_place match_place(const char *name, enum tq_verdict verdict, int data, uint64_t room);
/* Appends an entry at endpoint 0. */
void match_append(struct match_place *place, int rank, uint64_t bits, uint64_t ignore,
		  unsigned flags, tq_entry_id *id);
/* Sends a message to endpoint 0, whose header has the number. */
void match_send_long(uint64_t bits, uint64_t number, const void *data, uint64_t len,
		     struct many_op *op);
/* Sends a short text, which ends at once. */
void match_send_text(uint64_t bits, uint64_t number, const char *text);
/* Waits until `n` calls of done() were made. */
void match_wait(int n);
/* Checks a call of done(). */
void match_check(int i, const struct match_place *place, uint64_t bits, uint64_t number,
		 uint64_t length);

#endif
