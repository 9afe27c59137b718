/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control channel: messages are in order to each peer. Where messages are sent, control.c
 * decides what goes now, post.c keeps what waits, and post.c posts. Where they are received,
 * bank.c has the buffers, and credit.c says what senders may still send.
 */
#ifndef TQ_NET_CONTROL_H
#define TQ_NET_CONTROL_H

#include "net/peers/link.h"

int tq_control_open(struct tq_net *net);
void tq_control_close(struct tq_net *net);

/* The operations of struct tq_net_ops: control, eager_buf, eager_send, prepare_data and
 * backpressure. */
int tq_control_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		    unsigned flags);
void *tq_control_buf(struct tq_net *net, struct tq_link *link, uint32_t len);
int tq_control_buf_send(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			unsigned flags);
bool tq_control_prepare_data(struct tq_net *net, struct tq_link *link);
void tq_control_backpressure(struct tq_net *net, bool stop);

/* Returns true if messages wait, to any peer. */
bool tq_control_waits(const struct tq_net *net);
/* Returns true if messages wait for the link, and its process has not asked to stop them. */
bool tq_control_moves(const struct tq_link *link);

/* The terms that a process learns when it connects its control lane, besides its number here
 * (link->number_here). */
struct tq_control_terms {
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES];
	uint32_t credits[TQ_CLASSES]; /* 0: a ring */
	uint32_t ring;                /* its number, plus 1; 0: none */
	uint32_t ring_size;
};
/* Gives a process that connects its control lane to this one a ring if it can use one, or else a
 * bank and credits, for the answer; when it asks again, the same ones. Returns 0 or -ENOSPC. */
int tq_control_accept(struct tq_net *net, struct tq_link *link, bool ring,
		      struct tq_control_terms *terms);
/* Drops the messages that wait for the link, which goes, and its share of a bank, or its rings. */
void tq_control_forget(struct tq_net *net, struct tq_link *link);

/* Sends credits that are due, and what waits if it can go. Returns the number of events. */
int tq_control_poll(struct tq_net *net);
/* Forces completions for outstanding unsignalled sends, of all or of the link's node. Returns true
 * if nothing waits, of all or of the link, and nothing is in a send queue. */
bool tq_control_quiesce(struct tq_net *net);
bool tq_control_quiesce_link(struct tq_net *net, struct tq_link *link);

#endif
