/* SPDX-License-Identifier: BSD-3-Clause */
/* Banks: control SRQs and the buffers in them. */
#ifndef TQ_NET_BANK_H
#define TQ_NET_BANK_H

#include "net/peers/link.h"

struct tq_bounces;

/*
 * A control SRQ of each class and the buffers in them, for as many senders as their credits allow.
 * Two small buffers of each sender are for CREDIT messages.
 */
struct tq_bank {
	struct ibv_srq *srq[TQ_CLASSES];
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES];    /* bytes of a buffer */
	uint32_t depth[TQ_CLASSES];   /* buffers in the SRQ */
	uint32_t granted[TQ_CLASSES]; /* of these, to senders; never more than depth */
	struct tq_bounces *bounces[TQ_CLASSES];
	struct ibv_recv_wr *used[TQ_CLASSES]; /* list: receives of buffers to be posted again */
	struct tq_bank *next;                 /* tq_banks.all */
};

struct tq_banks {
	struct tq_bank *all;       /* list */
	struct tq_bounces *chunks; /* list of all buffers: those of banks, and spare ones */
	struct tq_bounce *spare[TQ_CLASSES]; /* substitutes for those that the protocol keeps */
	uint32_t nspare[TQ_CLASSES];         /* that were made */
	uint32_t nused;                      /* buffers to be posted again, of all banks */
	uint32_t skipped;                    /* polls that posted none of these */
	bool post_failure_logged;
};

/* Returns the bytes of a buffer of that class. */
uint32_t tq_bank_size(const struct tq_net *net, int cls);
int tq_banks_open(struct tq_net *net);
void tq_banks_close(struct tq_net *net);
/* Finds a bank with room for one more sender, or makes one. NULL: none can be made. */
struct tq_bank *tq_bank_get(struct tq_net *net);
/* Takes the link, which goes, from its bank. */
void tq_bank_forget(struct tq_net *net, struct tq_link *link);
/* Posts used buffers again; after that the credits for them may go. */
void tq_banks_poll(struct tq_net *net);
/* Takes a buffer back that tq_core_on_control() kept. */
void tq_bank_bounce_put(struct tq_net *net, struct tq_bounce *bounce);

#endif
