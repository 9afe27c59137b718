/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - messages in pairs of ranks: an even rank sends, the odd rank after it receives, and each
 * kind of receive and probe takes a message. With an odd number of ranks the last one has no peer.
 */
#ifndef T_PAIR_H
#define T_PAIR_H

#include "check.h"

enum { PAIR_N = 8, PAIR_MAX = 70000 };

extern struct pair {
	int peer;         /* the other rank; t_size or more: there is none */
	bool sender;      /* this rank is the sender */
	struct t_rng rng; /* both ranks have the same */
	MPI_Comm side;    /* of the pair, for messages that are not tested */
	int tag;          /* of the messages of this round */
	unsigned int seq; /* number of this round's first message */
	int bytes[PAIR_N];
	unsigned char *out[PAIR_N], *in[PAIR_N];
	MPI_Request req[PAIR_N];
} pair;

/* Calls t_init(); the program's first argument is the seed. */
void pair_init(int *argc, char ***argv);
/* Calls t_finish(), and returns its value. */
int pair_finish(void);

/* Waits until both ranks are here. */
void pair_meet(void);
/* Returns message i of this round, of the rank src. */
struct t_msg pair_message(int src, int i);
/* Writes the contents of message i, which this rank sends. */
void pair_fill(int i);
/* Checks a received message i, and its status. */
void pair_check(const void *buf, const MPI_Status *st, int i);
/* Receives message i by these arguments, and checks it. */
void pair_receive(int i, int src, int tag);

/* Take message i, each in its own way. */
void pair_by_exact(int i);
void pair_by_any_source(int i);
void pair_by_any_tag(int i);
void pair_by_any(int i);
void pair_by_probe(int i);

#endif
