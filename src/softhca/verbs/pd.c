/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pd.c - protection domains, thread domains, and the parent domains that join one of each.
 */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/context_objects.h"

static int count_pd(struct shca_context *ctx)
{
	uint32_t limit = (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_PD);

	if (!shca_ours(&ctx->vctx.context))
		return -EIO;
	if (atomic_fetch_add(&ctx->hca->pds, 1) >= limit) {
		atomic_fetch_sub(&ctx->hca->pds, 1);
		return -ENOMEM;
	}
	/* The reaper subtracts this count. */
	atomic_fetch_add(&shca_self.proc->pds[ctx->hca_idx], 1);
	return 0;
}

static void uncount_pd(struct shca_context *ctx)
{
	atomic_fetch_sub(&shca_self.proc->pds[ctx->hca_idx], 1);
	atomic_fetch_sub(&ctx->hca->pds, 1);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct shca_context *ctx = shca_ctx(context);
	struct shca_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		errno = ENOMEM;
		return NULL;
	}
	ret = count_pd(ctx);
	if (ret) {
		free(pd);
		errno = -ret;
		return NULL;
	}
	pd->pdn = atomic_fetch_add(&ctx->hca->next_pdn, 1);
	pd->ibv.context = context;
	pd->ibv.handle = pd->pdn;
	shca_context_objects_add(context, &pd->context_node, SHCA_OBJECT_PD, pd);
	return &pd->ibv;
}

void shca_pd_end(struct shca_pd *pd)
{
	if (!pd->protection_domain)
		uncount_pd(shca_ctx(pd->ibv.context));
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct shca_pd *pd = (struct shca_pd *)ibpd;

	if (!shca_ours(ibpd->context))
		return EIO;
	if (pd->imported)
		return EINVAL;
	if (atomic_load(&pd->refs) != 0)
		return EBUSY;
	if (pd->protection_domain) {
		atomic_fetch_sub(&pd->protection_domain->refs, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
	}
	shca_context_objects_remove(&pd->context_node);
	shca_pd_end(pd);
	free(pd);
	return 0;
}

/* Every object has its own locks here: a thread domain only promises that they are not
 * contended. */
struct ibv_td *shca_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct shca_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td) {
		errno = ENOMEM;
		return NULL;
	}
	td->ibv.context = context;
	shca_context_objects_add(context, &td->context_node, SHCA_OBJECT_TD, td);
	return &td->ibv;
}

int shca_dealloc_td(struct ibv_td *ibtd)
{
	struct shca_td *td = (struct shca_td *)ibtd;

	if (atomic_load(&td->refs) != 0)
		return EBUSY;
	shca_context_objects_remove(&td->context_node);
	free(td);
	return 0;
}

static int check_parent_attr(const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (!attr->pd || (attr->comp_mask & ~known))
		return -EINVAL;
	if (((struct shca_pd *)attr->pd)->protection_domain)
		return -EINVAL;
	return 0;
}

struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct shca_pd *domain;
	int ret;

	ret = check_parent_attr(attr);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	domain = calloc(1, sizeof(*domain));
	if (!domain) {
		errno = ENOMEM;
		return NULL;
	}
	domain->protection_domain = shca_pd_use(attr->pd);
	domain->td = (struct shca_td *)attr->td;
	domain->pdn = domain->protection_domain->pdn;
	domain->ibv.context = context;
	domain->ibv.handle = domain->pdn;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		domain->alloc = attr->alloc;
		domain->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		domain->pd_context = attr->pd_context;
	if (domain->td)
		atomic_fetch_add(&domain->td->refs, 1);
	shca_context_objects_add(context, &domain->context_node, SHCA_OBJECT_PD, domain);
	return &domain->ibv;
}
