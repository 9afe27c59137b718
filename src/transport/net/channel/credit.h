/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits: the messages that a sender may send to the buffers of its bank. */
#ifndef TQ_NET_CREDIT_H
#define TQ_NET_CREDIT_H

#include "net/channel/bank.h"

/* Returns true if the credits of one more sender fit into the bank. */
bool tq_credit_fits(const struct tq_net *net, const struct tq_bank *bank);
/* Gives the link a bank, with the credits that it has at first. */
void tq_credit_give(struct tq_net *net, struct tq_link *link, struct tq_bank *bank);
/* Takes the bank and its credits away from the link. */
void tq_credit_forget(struct tq_net *net, struct tq_link *link);
/* Takes note that a buffer which a message of the link used is posted again. */
void tq_credit_owe(struct tq_net *net, struct tq_link *link, int cls);
/* Takes the credits that a message of the link returns. Returns false if they are more than there
 * can be. */
bool tq_credit_take(struct tq_link *link, const struct tq_msg_hdr *hdr);
/* Sends the CREDIT messages that are due. Returns their number. */
int tq_credit_poll(struct tq_net *net);

#endif
