/* SPDX-License-Identifier: BSD-3-Clause */
/* The model's registrations and copies. Memory that the HCA may use has to be registered, until the
 * HCA is done with it. */
#include <stdlib.h>
#include <string.h>

#include "model_ops.h"

static struct model_reg *reg_new(struct model_ep *ep, void *addr, uint64_t len, bool write)
{
	struct model_reg *reg = calloc(1, sizeof(*reg));

	reg->reg.lkey = ep->model->next_key++;
	reg->reg.rkey = ep->model->next_key++;
	reg->addr = addr;
	reg->write = write;
	reg->len = len;
	DL_APPEND(ep->regs, reg);
	return reg;
}

static struct model_reg *reg_find(struct model_ep *ep, const struct tq_reg *what)
{
	struct model_reg *reg;

	DL_FOREACH(ep->regs, reg) {
		if (&reg->reg == what)
			return reg;
	}
	return NULL;
}

struct model_reg *model_check_reg(struct model_ep *ep, const struct tq_sg *sg, bool write,
				  const char *what)
{
	struct model_reg *reg;

	if (!sg->len)
		return NULL;
	reg = reg_find(ep, sg->reg);
	t_true(reg, "%s: its memory isn't registered (any more)", what);
	t_true(!write || reg->write, "%s: its memory is registered to be read only", what);
	t_true((uint8_t *)sg->addr >= reg->addr &&
		       (uint8_t *)sg->addr + sg->len <= reg->addr + reg->len,
	       "%s: outside of its registration", what);
	return reg;
}

/* Checks that the HCA no longer uses a registration that is given back. */
static void reg_gone(struct model_ep *ep, struct model_reg *reg)
{
	struct model *model = ep->model;
	struct model_recv *recv;

	for (uint32_t i = 0; i < model->nsrqs; i++) {
		if (model->srqs[i]->ep != ep->id)
			continue;
		DL_FOREACH(model->srqs[i]->recvs, recv) {
			for (int k = 0; k < recv->nsg; k++)
				t_true(recv->sg[k].reg != &reg->reg,
				       "a registration is put that a receive in an SRQ uses");
		}
	}
	for (int qp = 0; qp < MODEL_QPS; qp++) {
		struct model_item *it;

		DL_FOREACH(ep->sq[qp], it) {
			for (int k = 0; k < it->nsg; k++)
				t_true(it->inlined || it->sg[k].reg != &reg->reg,
				       "a registration is put that a send queue uses");
		}
	}
	DL_DELETE(ep->regs, reg);
	free(reg);
}

struct tq_reg *model_op_reg(struct tq_net *net, void *addr, uint64_t len, bool write, void **cookie)
{
	struct model_ep *ep = model_enter(net);
	struct model_reg *reg;

	if ((ep->model->conf.no_registration & 1u << ep->id) ||
	    model_fails(ep, ep->model->conf.no_reg))
		return NULL;
	reg = reg_new(ep, addr, len, write);
	*cookie = reg;
	return &reg->reg;
}

void model_op_unreg(struct tq_net *net, struct tq_reg *what, void *cookie)
{
	struct model_ep *ep = model_enter(net);
	struct model_reg *reg = reg_find(ep, what);

	t_true(reg && cookie == reg, "unreg() of what isn't registered");
	reg_gone(ep, reg);
}

bool model_op_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	struct model_ep *ep = model_enter(net);

	if (ep->copied + len > ep->model->conf.copy_pool ||
	    model_fails(ep, ep->model->conf.no_copy))
		return false;
	ep->copied += len;
	sg->addr = malloc(len ? len : 1);
	sg->len = len;
	sg->reg = &reg_new(ep, sg->addr, len, true)->reg;
	return true;
}

bool model_op_reserve_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	struct model_ep *ep = model_enter(net);
	struct model_reg *reg;

	t_true(len <= ep->limits.control_data_max, "reserve_get() of %llu bytes",
	       (unsigned long long)len);
	if (ep->reserve_used)
		return false;
	ep->reserve_used = true;
	sg->addr = malloc(len ? len : 1);
	sg->len = len;
	reg = reg_new(ep, sg->addr, len, true);
	reg->reserve = true;
	sg->reg = &reg->reg;
	return true;
}

void model_op_copy_put(struct tq_net *net, struct tq_sg *sg)
{
	struct model_ep *ep = model_enter(net);
	struct model_reg *reg = reg_find(ep, sg->reg);

	t_true(reg && reg->addr == sg->addr, "copy_put() of what isn't a copy");
	if (reg->reserve)
		ep->reserve_used = false;
	else
		ep->copied -= reg->len;
	memset(reg->addr, 0xdd, reg->len);
	reg_gone(ep, reg);
	free(sg->addr);
}
