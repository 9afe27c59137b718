/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * import.c - objects of a context that another context of the same process imports by its
 * descriptor, as a library does that is handed one. Imported objects are names: the originals
 * decide how long they can be used. Another process can't import them, because a region's memory is
 * one process's.
 */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/objects/dm.h"

static void *refuse(void)
{
	errno = EINVAL;
	return NULL;
}

static uint32_t handle_of_pd(const void *object)
{
	return ((const struct shca_pd *)object)->ibv.handle;
}

static uint32_t handle_of_mr(const void *object)
{
	return ((const struct shca_mr *)object)->ibv.handle;
}

static uint32_t handle_of_dm(const void *object)
{
	return ((const struct shca_dm *)object)->ibv.handle;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct shca_pd *pd =
		shca_context_objects_find(shca_ctx(context), SHCA_OBJECT_PD, handle, handle_of_pd);
	struct shca_pd *import;

	if (!pd || pd->protection_domain)
		return refuse();
	import = calloc(1, sizeof(*import));
	if (!import)
		return NULL;
	import->imported = pd;
	import->pdn = pd->pdn;
	import->ibv.context = context;
	import->ibv.handle = handle;
	shca_context_objects_add(context, &import->context_node, SHCA_OBJECT_IMPORT, import);
	return &import->ibv;
}

void ibv_unimport_pd(struct ibv_pd *ibpd)
{
	struct shca_pd *pd = (struct shca_pd *)ibpd;

	shca_context_objects_remove(&pd->context_node);
	free(pd);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *ibpd, uint32_t handle)
{
	struct shca_mr *mr = shca_context_objects_find(shca_ctx(ibpd->context), SHCA_OBJECT_MR,
						       handle, handle_of_mr);
	struct shca_mr *import;

	/* The null MR is no object of the kernel, and has no handle. */
	if (!mr || (mr->entry->flags & SHCA_MR_NULL) ||
	    mr->entry->pdn != ((struct shca_pd *)ibpd)->pdn)
		return refuse();
	import = calloc(1, sizeof(*import));
	if (!import)
		return NULL;
	import->entry = mr->entry;
	import->ibv = (struct ibv_mr){.context = ibpd->context,
				      .pd = ibpd,
				      .length = mr->ibv.length,
				      .handle = handle,
				      .lkey = mr->ibv.lkey,
				      .rkey = mr->ibv.rkey};
	shca_context_objects_add(ibpd->context, &import->context_node, SHCA_OBJECT_IMPORT, import);
	return &import->ibv;
}

void ibv_unimport_mr(struct ibv_mr *ibmr)
{
	struct shca_mr *mr = (struct shca_mr *)ibmr;

	shca_context_objects_remove(&mr->context_node);
	free(mr);
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct shca_dm *dm =
		shca_context_objects_find(shca_ctx(context), SHCA_OBJECT_DM, handle, handle_of_dm);
	struct shca_dm *import;

	if (!dm)
		return refuse();
	import = calloc(1, sizeof(*import));
	if (!import)
		return NULL;
	import->memory = dm->memory;
	import->length = dm->length;
	import->imported = dm;
	import->ibv = dm->ibv;
	import->ibv.context = context;
	shca_context_objects_add(context, &import->context_node, SHCA_OBJECT_IMPORT, import);
	return &import->ibv;
}

void ibv_unimport_dm(struct ibv_dm *ibdm)
{
	struct shca_dm *dm = (struct shca_dm *)ibdm;

	shca_context_objects_remove(&dm->context_node);
	free(dm);
}
