/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of the model (struct tq_net_ops) that are not in model.c. */
#ifndef SIM_MODEL_OPS_H
#define SIM_MODEL_OPS_H

#include "model.h"

static inline bool model_fails(struct model_ep *ep, uint32_t of_256)
{
	return !ep->model->calm && sim_chance(ep->model->rng, of_256);
}

/* Begins every operation. */
static inline struct model_ep *model_enter(struct tq_net *net)
{
	struct model_ep *ep = (struct model_ep *)net;

	t_true(!ep->eager, "an operation between eager_buf() and eager_send()");
	return ep;
}

/* ---- model_memory.c ---- */
struct tq_reg *model_op_reg(struct tq_net *net, void *addr, uint64_t len, bool write,
			    void **cookie);
void model_op_unreg(struct tq_net *net, struct tq_reg *what, void *cookie);
bool model_op_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
bool model_op_reserve_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
void model_op_copy_put(struct tq_net *net, struct tq_sg *sg);

/* ---- model_srqs.c ---- */
struct tq_srq *model_op_srq_get(struct tq_net *net, uint32_t *srqn);
int model_op_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		      void *token);
void model_op_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe);

#endif
