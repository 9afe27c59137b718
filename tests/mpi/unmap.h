/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unmap.h - shared by the parts of unmap.c. Rank 1, the owner, has the memory that is given back.
 * Rank 0, the peer, has a buffer of its own.
 */
#ifndef UNMAP_H
#define UNMAP_H

#include "check.h"

enum { OWNER = 1, PEER = 0 };
enum { TAG = 5, TAG_PENDING = 100 };
enum { UNITS = 8 };
enum { UNMAP_HUGE_PAGE = 2 << 20, UNMAP_HUGE_UNITS = 4 };

extern size_t unmap_page;
extern const size_t unmap_most;     /* bytes of the largest transfer */
extern const size_t unmap_large;    /* bytes of a buffer that is registered in each protocol */
extern unsigned char *unmap_mirror; /* the peer's buffer */
extern unsigned char *unmap_spare;  /* memory that is never given back */

/* ---- transfers ---- */

/* Messages between owner and peer, of one thread of each. */
struct unmap_stream {
	MPI_Comm comm;
	unsigned seq;
	unsigned char *mirror;
};

/* The stream of the main thread. */
extern struct unmap_stream unmap_all;

/* Returns the next message of a stream. */
struct t_msg unmap_next_message(struct unmap_stream *stream, int src, int tag);
/* Sends part of the owner's memory to the peer, and other data back, which the part then holds. */
struct t_msg unmap_exchange(struct unmap_stream *stream, unsigned char *part, size_t bytes);

/* Operations of the owner that wait for the peer. */
enum { PENDING = UNITS };
struct unmap_pending {
	bool send;
	int count;
	MPI_Request request[PENDING];
	unsigned char *buf[PENDING];
	size_t bytes[PENDING];
	struct t_msg message[PENDING];
};

/* Starts one more operation. */
void unmap_start(struct unmap_stream *stream, struct unmap_pending *pending, unsigned char *buf,
		 size_t bytes);
/* Ends all pending operations; the peer does its part. */
void unmap_finish(struct unmap_stream *stream, struct unmap_pending *pending);

/* ---- registrations ---- */

/* Registrations that were made so far, attempts that failed, and messages that were copied from the
 * memory of a process of the node, which needs none. */
struct unmap_made {
	long long registrations, failures, copies;
};

struct unmap_made unmap_made_until_now(void);
/* Expects that a registration was attempted, or that messages were copied: no registration that was
 * there before can have been right for the new memory that was transferred. */
void unmap_must_have_registered(struct unmap_made before);

/* ---- memory ---- */

/* Kinds of memory. The ways to give memory back depend on them. */
enum { ANONYMOUS = 1, SHARED = 2, FILE_COPY = 4, POOL = 8, ANY = 15, SMALL = ANY & ~POOL };

struct unmap_memory {
	const char *name;
	int kind;
	size_t unit; /* pages in a unit of the larger mappings */
	unsigned char *(*map)(size_t bytes);
};

struct unmap_way {
	const char *name;
	int kinds;
	bool stays_mapped;
	/* Gives back [at, at + bytes) of the memory that begins at map. */
	bool (*give)(unsigned char *map, unsigned char *at, size_t bytes);
};

/* All end with an entry without a name. */
extern const struct unmap_memory unmap_memories[];
extern const struct unmap_way unmap_ways[];

unsigned char *unmap_map_anonymous(size_t bytes);
/* Attaches a new System V segment, which is removed with its last attachment. */
unsigned char *unmap_attach(void *at, size_t bytes, int flags);
/* Maps huge pages of the pool that the system keeps. Returns MAP_FAILED if the pool has too few. */
void *unmap_try_huge(size_t bytes);
void unmap_give(const struct unmap_way *way, unsigned char *map, unsigned char *at, size_t bytes);
/* Returns the owner's part to be used at this address: memory that is mapped anew by a call that no
 * library notices, or spare memory if something else in the process took the place. */
unsigned char *unmap_renew(unsigned char *at, size_t bytes);

/* ---- the parts of the program ---- */

void unmap_check_ways(void);
void unmap_check_many(void);
void unmap_check_segments(void);
void unmap_check_shared(void);
void unmap_check_coll(void);
void unmap_check_rma(void);
void unmap_check_heap(void);
void unmap_check_threads(int rounds);

#endif
