/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - System V shared memory, and two children of a test that are connected: child 1, the
 * owner, has a region in it, and child 0, the requester, sends requests there.
 */
#ifndef T_SEGMENT_H
#define T_SEGMENT_H

#include "procs.h"

#define SEG_LEN 65536

/* Keys of the mailboxes. */
enum seg_key {
	SEG_K_QP = 0,
	SEG_K_BUF = 4,
	SEG_K_ID = 6,
	SEG_K_FREE /* the test's own */
};

int seg_make(void);
char *seg_attach(int id);
/* Waits until so many have attached it. */
void seg_await_attached(int id, unsigned n);

struct seg_side {
	struct t_dev *d;
	struct t_qp *q;
	struct t_buf own;
	int id; /* of the owner's segment */
	struct procs_buf there;
};

/* The owner, with a region that is all of a segment: of one that is removed already, or of that
 * one, attached at addr. */
struct seg_side seg_owner(void);
struct seg_side seg_owner_with(int id, char *addr, int access);
struct seg_side seg_requester(void);
void seg_owner_close(struct seg_side *s);
void seg_requester_close(struct seg_side *s);
/* A request to that place of the region, from the start of the requester's memory, or to it. */
enum ibv_wc_status seg_request(struct seg_side *s, enum ibv_wr_opcode op, size_t off, size_t len);
enum ibv_wc_status seg_write_word(struct seg_side *s, size_t off, uint64_t value);
uint64_t seg_word_at(const char *p);

/* The two, on two nodes. */
void seg_run(procs_fn fn);
/* All is copied by system calls: as the argument "copied" says, or as the kernel is too old. */
bool seg_copied(int argc, char **argv);

#endif
