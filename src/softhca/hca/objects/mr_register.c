/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_register.c - registering, changing and deregistering memory regions.
 */
#include "mr_register.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "dm.h"
#include "fabric/table.h"
#include "hca/memory/mw.h"
#include "hca/memory/segment.h"
#include "hca/queues/cq.h"

/* The inline wrappers of verbs.h are macros of these names; here the symbols themselves are
 * defined. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct shca_mr *mr_alloc(struct ibv_pd *pd)
{
	struct shca_context *ctx = shca_ctx(pd->context);
	struct shca_mr *mr;
	int64_t idx;

	if (!shca_ours(pd->context)) {
		errno = EIO;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	idx = shca_table_alloc(&shca_self.fabric, ctx->hca, SHCA_MR, shca_self.slot);
	if (idx < 0) {
		free(mr);
		errno = (int)-idx;
		return NULL;
	}
	mr->entry = shca_table_entry(&shca_self.fabric, &ctx->hca->tables[SHCA_MR], (uint32_t)idx);
	mr->entry->pdn = ((struct shca_pd *)pd)->pdn;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.handle = (uint32_t)idx;
	mr->ibv.lkey = mr->ibv.rkey = shca_table_number(mr->entry);
	return mr;
}

static void mr_free(struct shca_mr *mr)
{
	shca_table_free(shca_ctx(mr->ibv.context)->hca, SHCA_MR, mr->entry);
	free(mr);
}

/* Pages are paid for in steps, because runs in virtual time are to repeat: if a library has
 * threads, malloc() puts a short buffer at another place in each run, and the buffer may touch one
 * page more. */
enum { PAGE = 4096, PRICED_PAGES = 16 };

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned access)
{
	SHCA_CLOCKED(REG, 1);
	struct shca_mr *mr;
	int rc;

	/* Whole pages are mapped, so the two addresses must agree within a page
	 * (ib_uverbs_reg_mr()). */
	if (((uintptr_t)addr ^ iova) & 4095) {
		errno = EINVAL;
		return NULL;
	}
	mr = mr_alloc(pd);
	if (!mr)
		return NULL;
	rc = shca_mr_describe(shca_ctx(pd->context), mr->entry, (uintptr_t)addr, length, iova,
			      access, &mr->pinned);
	if (rc) {
		mr_free(mr);
		errno = -rc;
		return NULL;
	}
	shca_clock_pay(SHCA_CALL_PAGE, mr->pinned / PAGE / PRICED_PAGES * PRICED_PAGES);
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->pd = shca_pd_use(pd);
	shca_context_objects_add(pd->context, &mr->context_node, SHCA_OBJECT_MR, mr);
	shca_table_publish(mr->entry);
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return reg(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd)
{
	struct shca_mr *mr;

	if (!shca_opt(&shca_self.fabric, SHCA_O_NULL_MR)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = mr_alloc(pd);
	if (!mr)
		return NULL;
	mr->entry->flags = SHCA_MR_NULL;
	mr->entry->length = UINT64_MAX;
	mr->entry->access = IBV_ACCESS_LOCAL_WRITE;
	/* As with mlx5, the null MR is for local use alone: no rkey, and no kernel object. */
	mr->ibv.length = SIZE_MAX;
	mr->ibv.rkey = mr->ibv.handle = 0;
	mr->pd = shca_pd_use(pd);
	shca_context_objects_add(pd->context, &mr->context_node, SHCA_OBJECT_MR, mr);
	shca_table_publish(mr->entry);
	return &mr->ibv;
}

/* Returns 0, or -errno if that part of device memory can't be registered with that access. */
static int check_device(const struct ibv_pd *pd, const struct shca_dm *dm, uint64_t offset,
			size_t length, unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;

	/* Device memory has no addresses of its own, so those of a region begin at 0. */
	if (pd->context != dm->ibv.context || (access & ~known) ||
	    !(access & IBV_ACCESS_ZERO_BASED) || offset > dm->length ||
	    length > dm->length - offset)
		return -EINVAL;
	/* The kernel registers a part of no length, too. */
	return shca_mr_check_access((uintptr_t)dm->memory, length ? length : 1, access);
}

struct ibv_mr *shca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
			      size_t length, unsigned int access)
{
	SHCA_CLOCKED(REG, 1);
	struct shca_dm *dm = (struct shca_dm *)ibdm;
	int rc = check_device(pd, dm, offset, length, access);
	struct shca_mr *mr;

	if (rc) {
		errno = -rc;
		return NULL;
	}
	mr = mr_alloc(pd);
	if (!mr)
		return NULL;
	mr->dm = dm->imported ? dm->imported : dm;
	mr->entry->flags = SHCA_MR_DEVICE;
	mr->entry->va = (uintptr_t)dm->memory + offset;
	mr->entry->length = length;
	mr->entry->access = access;
	mr->ibv.length = length;
	atomic_fetch_add(&mr->dm->refs, 1);
	mr->pd = shca_pd_use(pd);
	shca_context_objects_add(pd->context, &mr->context_node, SHCA_OBJECT_MR, mr);
	shca_table_publish(mr->entry);
	return &mr->ibv;
}

/* Returns true if the arguments of ibv_rereg_mr() make sense together: the checks of libibverbs. */
static bool may_rereg(const struct shca_mr *mr, int flags, const void *addr, size_t length,
		      int access)
{
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return false;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr))
		return false;
	return (!access || (flags & IBV_REREG_MR_CHANGE_ACCESS)) && mr->pd &&
	       !(mr->entry->flags & SHCA_MR_NULL);
}

/* Returns 0, or -errno if the kernel refuses the change before it looks at the memory. */
static int check_rereg(const struct shca_mr *mr, int flags, const struct ibv_pd *pd, int access)
{
	int rc = 0;

	if (!flags || mr->dm)
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		rc = shca_mr_check_access_flags((uint32_t)access);
	if (!rc && (flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->ibv.context))
		rc = -EINVAL;
	return rc;
}

/* Returns false if a memory window is bound to a region, which stays then. */
static bool retire(const struct shca_mr *mr)
{
	return shca_mw_retire_region(shca_ctx(mr->ibv.context)->hca, mr->entry, mr->ibv.lkey);
}

/* Changes a region that is retired. As on hardware the region can't be used meanwhile: no requester
 * sees it half changed. */
static void change(struct shca_mr *mr, const struct shca_mr_entry *next, struct ibv_pd *pd,
		   bool moves)
{
	struct ibv_mr *ibmr = &mr->ibv;

	shca_epoch_sync(&shca_self.fabric);
	shca_cq_deliver_all_payloads();
	if (moves) {
		shca_segment_release(mr->entry);
		mr->entry->va = next->va;
		mr->entry->iova = next->iova;
		mr->entry->length = next->length;
		mr->entry->flags = next->flags;
		mr->entry->shmid = next->shmid;
		mr->entry->shm_ns = next->shm_ns;
		mr->entry->shm_at = next->shm_at;
	}
	mr->entry->access = next->access;
	if (pd != ibmr->pd) {
		atomic_fetch_sub(&mr->pd->refs, 1);
		mr->pd = shca_pd_use(pd);
		mr->entry->pdn = ((struct shca_pd *)pd)->pdn;
		ibmr->pd = pd;
	}
}

/* Returns true if a change of access, as with mlx5, needs the region's memory only as it is pinned
 * already. */
static bool keeps_memory(uint32_t was, uint32_t access)
{
	return !((was ^ access) & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED)) &&
	       !(access & ~was & IBV_ACCESS_LOCAL_WRITE);
}

int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	SHCA_CLOCKED(REG, 1);
	struct shca_mr *mr = (struct shca_mr *)ibmr;
	struct shca_mr_entry next = {.va = mr->entry->va};
	bool translate = flags & IBV_REREG_MR_CHANGE_TRANSLATION, moves;
	uint64_t pinned = mr->pinned;
	int rc;

	if (!shca_ours(ibmr->context)) {
		errno = EIO;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (!may_rereg(mr, flags, addr, length, access)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	rc = check_rereg(mr, flags, pd, access);
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (!translate) {
		addr = ibmr->addr;
		length = ibmr->length;
	}
	next.access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (uint32_t)access : mr->entry->access;
	moves = translate || !keeps_memory(mr->entry->access, next.access);
	if (moves)
		rc = shca_mr_describe(shca_ctx(ibmr->context), &next, (uintptr_t)addr, length,
				      translate ? (uintptr_t)addr : mr->entry->iova, next.access,
				      &pinned);
	else
		rc = shca_mr_check_access((uintptr_t)addr, length, next.access);
	if (!rc && !retire(mr)) {
		if (moves) {
			shca_segment_release(&next);
			shca_mr_unpin(pinned);
		}
		rc = -EBUSY;
	}
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_CMD;
	}
	change(mr, &next, flags & IBV_REREG_MR_CHANGE_PD ? pd : ibmr->pd, moves);
	if (moves)
		shca_mr_unpin(mr->pinned);
	mr->pinned = pinned;
	ibmr->addr = addr;
	ibmr->length = length;
	shca_table_publish(mr->entry);
	return 0;
}

void shca_mr_end(struct shca_mr *mr)
{
	/* The user may unmap the memory as soon as this returns: wait for all requesters that
	 * are copying. */
	shca_table_retire(mr->entry);
	shca_epoch_sync(&shca_self.fabric);
	/* Data that has arrived is in memory, even if nobody has polled its completion yet. */
	shca_cq_deliver_all_payloads();
	shca_segment_release(mr->entry);
	shca_mr_unpin(mr->pinned);
	shca_table_free(shca_ctx(mr->ibv.context)->hca, SHCA_MR, mr->entry);
}

int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	SHCA_CLOCKED(REG, 1);
	struct shca_mr *mr = (struct shca_mr *)ibmr;

	if (!shca_ours(ibmr->context))
		return EIO;
	if (!mr->pd) /* it was imported */
		return EINVAL;
	if (!retire(mr))
		return EBUSY;
	shca_context_objects_remove(&mr->context_node);
	shca_mr_end(mr);
	if (mr->dm)
		atomic_fetch_sub(&mr->dm->refs, 1);
	atomic_fetch_sub(&mr->pd->refs, 1);
	free(mr);
	return 0;
}

/* Prefetches memory of an on-demand region. Returns 0, or the errno of mlx5's driver. Pages that
 * aren't there are an error only if the caller waits for them. */
static int prefetch(const struct shca_context *ctx, uint32_t pdn, enum ibv_advise_mr_advice advice,
		    bool waits, const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct shca_mr_entry *entry =
		shca_table_peek(&shca_self.fabric, ctx->hca, SHCA_MR, sge->lkey);
	int rc = 0;

	if (!entry || !(entry->access & IBV_ACCESS_ON_DEMAND) ||
	    shca_word_owner(shca_table_state_word(entry)) != shca_self.slot)
		return ENOENT;
	if (entry->pdn != pdn || (write && !(entry->access & IBV_ACCESS_LOCAL_WRITE)))
		return EPERM;
	if (!shca_mr_holds(entry, sge->addr, sge->length))
		rc = EFAULT;
	else if (sge->length && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT &&
		 shca_mem_populate(entry->va + (sge->addr - entry->iova), sge->length, write))
		rc = EFAULT;
	return waits ? rc : 0;
}

int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sge, uint32_t n)
{
	int rc = 0;

	if (shca_opt(&shca_self.fabric, SHCA_O_ODP) == SHCA_ODP_OFF ||
	    advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !n)
		return EINVAL;
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = prefetch(shca_ctx(pd->context), ((struct shca_pd *)pd)->pdn, advice,
			      flags & IBV_ADVISE_MR_FLAG_FLUSH, &sge[i]);
	return rc;
}
