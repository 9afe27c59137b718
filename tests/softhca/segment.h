/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - System V shared memory, and two connected children of a test: child 1, the owner, has
 * a region in shared memory, and child 0, the requester, sends requests there.
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
	SEG_K_FREE /* the first key for the test itself */
};

int seg_make(void);
char *seg_attach(int id);
/* Waits until n processes have attached the segment. */
void seg_await_attached(int id, unsigned n);

struct seg_side {
	struct t_dev *dev;
	struct t_qp *qp;
	struct t_buf own;
	int id; /* of the owner's segment */
	struct procs_buf there;
};

/* Return the owner's side, with a region that covers a segment: a new one that is already removed,
 * or segment id, attached at addr. */
struct seg_side seg_owner(void);
struct seg_side seg_owner_with(int id, char *addr, int access);
struct seg_side seg_requester(void);
void seg_owner_close(struct seg_side *side);
void seg_requester_close(struct seg_side *side);
/* Sends a request to that place of the region. The data come from the start of the requester's
 * memory, or go there. */
enum ibv_wc_status seg_request(struct seg_side *side, enum ibv_wr_opcode op, size_t off,
			       size_t len);
enum ibv_wc_status seg_write_word(struct seg_side *side, size_t off, uint64_t value);
uint64_t seg_word_at(const char *p);

/* Runs fn in the owner and the requester, on two nodes. */
void seg_run(procs_fn fn);
/* Returns true if system calls copy all data: the argument is "copied", or the kernel is too old
 * for another way. */
bool seg_copied(int argc, char **argv);

#endif
