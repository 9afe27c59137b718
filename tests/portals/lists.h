/* SPDX-License-Identifier: BSD-3-Clause */
/* lists.h - programs for libportals' lists, and their runs on a model of libtupleq. */
#ifndef PORTALS_LISTS_H
#define PORTALS_LISTS_H

#include <portals4.h>

#include "schedule.h"

#define USER_MOST 14
#define PUTS_MOST 14

enum user_action { APPEND, SEARCH, UNLINK, DISABLE, ENABLE };

/* A step of the user. */
struct user_step {
	enum user_action action;
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
extern struct paths *lists_paths;
/* The choices of the next run. */
extern struct schedule *lists_schedule;

/* Runs a program, whose user takes `nuser` steps. Checks all events and answers (judge.h). */
void lists_play(const struct program *program, unsigned nuser);

#endif
