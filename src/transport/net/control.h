/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control channel's two sides share: control.c and post.c send, bank.c and credit.c
 * receive. */
#ifndef TQ_NET_CONTROL_H
#define TQ_NET_CONTROL_H

#include "net/net.h"

/* Send buffers that are there from the start. */
struct tq_reserve {
	struct tq_reg reg;
	void *mem, *free; /* stack, linked through their first word */
};

struct tq_control {
	/* bank.c */
	struct tq_bank *banks;
	struct tq_bounce *spare[TQ_CLASSES]; /* stand in for those that the protocol keeps */
	uint32_t nspare[TQ_CLASSES];         /* that were made */
	uint32_t nused;                      /* buffers to be posted again, of all banks */
	uint32_t skipped;                    /* polls that left them */
	struct tq_bounces *chunks;           /* all buffers: those of banks, and spare ones */

	/* credit.c */
	struct tq_link *from;  /* links that have a bank (from_next) */
	struct tq_link *owing; /* links to which CREDIT is due (next_owing) */
	bool backpressured;    /* unexpected data are at their limit */

	/* control.c */
	struct tq_link *waiting; /* links with a backlog (waiting_next) */
	struct tq_backlog *free; /* entries to use again */
	uint32_t nfree;
	void *scratch;             /* where a message gets its header */
	struct tq_sg lent;         /* what tq_control_buf() gave; reg NULL: a place of a lane */
	struct tq_link *data_link; /* tq_control_data_ready() said yes to */

	/* post.c */
	struct tq_reserve msgs; /* for messages without data, where they don't fit inline */
	/* For DATA, and for held messages' data: those have to go also when no copies can be had,
	 * and nothing else is needed for it. */
	struct tq_reserve pieces;
};

/* control.c */
/* Tells the link's process whether it may send eager data. One that can't be told yet, as it takes
 * nothing, is told the last word only: others may change that as often as they like. */
void tq_control_send_backpressure(struct tq_net *net, struct tq_link *link, bool stop);
/* What was posted waits again, in front of what was not yet, and has its copy. false: there is no
 * memory for it, so the link has failed. */
bool tq_control_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy);

/* post.c */
int tq_posts_open(struct tq_net *net);
void tq_posts_close(struct tq_net *net);
/* The lane to the link, if messages can go there at all; else it is asked for. */
struct tq_lane *tq_post_lane(struct tq_net *net, struct tq_link *link);
/* The lane, if a message of this length can go now. */
struct tq_lane *tq_post_ready(struct tq_net *net, struct tq_link *link, uint32_t len);
/* Posts the message, or the one in `copy`, if there is credit for it; fills in its header. 0,
 * -EAGAIN, -EIO. */
int tq_post(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
	    const struct tq_sg *copy, unsigned flags);
/* The same for one that has its header and its credit. */
int tq_post_again(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
		  const struct tq_sg *copy, unsigned flags);
/* Bytes of a DATA at most, which a buffer for pieces has. */
static inline uint32_t tq_piece_max(const struct tq_net *net)
{
	return net->limits.eager_max + (uint32_t)sizeof(struct tq_msg_data);
}

/* bank.c */
int tq_banks_open(struct tq_net *net);
void tq_banks_close(struct tq_net *net);
/* Posts again what was used; after it the credits for that may go. */
void tq_banks_poll(struct tq_net *net);
void tq_bank_forget(struct tq_net *net, struct tq_link *link);
/* One more: its SRQs and their buffers. -errno. */
int tq_bank_make(struct tq_net *net, struct tq_bank **made);

/* credit.c */
/* A buffer that its message used is posted again. */
void tq_credit_owe(struct tq_net *net, struct tq_link *link, int cls);
/* What the message returns. false: more than it can have. */
bool tq_credit_take(struct tq_link *link, const struct tq_msg_hdr *hdr);
/* The link has no bank any more. */
void tq_credit_forget(struct tq_net *net, struct tq_link *link);
/* Sends the CREDIT messages that are due; returns how many. */
int tq_credit_poll(struct tq_net *net);

/* Which of the link's buffers a message needs. */
static inline int tq_class_of(const struct tq_link *link, uint32_t len)
{
	return len <= link->size[TQ_SMALL] ? TQ_SMALL : TQ_LARGE;
}

#endif
