/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of receives: their completions. Called without libtupleq's lock. */
#ifndef TF_RECV_END_H
#define TF_RECV_END_H

#include <tupleq/match.h>

#include "recv.h"

/* Ends a receive with the message that has come, or with the error of struct tq_arrival. */
void tf_recv_end(struct tf_recv *recv, const struct tq_arrival *message);
/* Ends a receive that has been taken out of its list with an error (negative); 0: quietly. */
void tf_recv_end_error(struct tf_recv *recv, int error);
/* Ends a message that has gone to a buffer with FI_MULTI_RECV, and frees the record. */
void tf_recv_end_part(struct tf_part *part, const struct tq_arrival *message);
/* Lets the record that the caller holds be freed as soon as its receive has ended. */
void tf_recv_let_go(struct tf_recv *recv);
/* Frees the record if this is its last owner. */
void tf_recv_disown(struct tf_recv *recv);
/* Returns the completion of a message. */
struct tf_completion tf_recv_completion(const struct tf_op *op, enum tf_kind kind,
					const struct tq_envelope *envelope);
/* Sets the error of a completion: that of a message of which `received` bytes have come. */
void tf_recv_judge(struct tf_completion *completion, int error, uint64_t length, uint64_t received);

#endif
