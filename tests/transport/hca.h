/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the model's network: what the hardware does, and what software polls. */
#ifndef SIM_HCA_H
#define SIM_HCA_H

#include "model.h"

/* The first message from one endpoint to another on the control lane is polled there. */
void hca_control(struct model *m, int from, int to);

/* Can the head of this send queue move? A blocked bulk lane is a violation. */
bool hca_can_move(struct model *m, int ep, int qp);
/* It does: data arrive, both sides get their completion. */
void hca_move(struct model *m, int ep, int qp);

/* Is a completion of a send there, or are all lazy? */
bool hca_reported(const struct model *m, int ep, int qp);
/* The first completion of that queue is polled. */
void hca_sent(struct model *m, int ep, int qp);
void hca_delivered(struct model *m, int ep, int from, int qp);

/* A direct message that nobody has announced takes the SRQ's first receive. */
void hca_stray(struct model *m, int from, struct tq_srq *srq, uint64_t len);

/* The SRQs that an endpoint has withdrawn are destroyed. */
void hca_srqs_gone(struct model *m, int ep);

/* The lane that is being made towards `to` is ready. */
void hca_lane_ready(struct model *m, int ep, int to);

/* The connections between two endpoints fail: what is under way ends with -EIO. */
void hca_break(struct model *m, int a, int b);

#endif
