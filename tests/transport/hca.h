/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the model's network: actions of the hardware, and polls of software. */
#ifndef SIM_HCA_H
#define SIM_HCA_H

#include "model.h"

/* Has an endpoint poll the first control message of another. */
void hca_control(struct model *model, int from, int to);

/* Returns true if the head of the send queue can move. A blocked bulk lane is a violation. */
bool hca_can_move(struct model *model, int ep, int qp);
/* Moves the head of the send queue: data arrive, and both sides get completions. */
void hca_move(struct model *model, int ep, int qp);

/* Returns true if there is a completion of a send that is reported without a later one. */
bool hca_reported(const struct model *model, int ep, int qp);
/* Has an endpoint poll the first completion of a queue. */
void hca_sent(struct model *model, int ep, int qp);
void hca_delivered(struct model *model, int ep, int from, int qp);

/* Has a direct message that was never announced take the SRQ's first receive. */
void hca_stray(struct model *model, int from, struct tq_srq *srq, uint64_t len);

/* Destroys the SRQs that an endpoint has withdrawn. */
void hca_srqs_gone(struct model *model, int ep);

/* Makes the lane ready that is being made towards `to`. */
void hca_lane_ready(struct model *model, int ep, int to);

/* Breaks the connections between two endpoints: work under way ends with -EIO. */
void hca_break(struct model *model, int a, int b);

#endif
