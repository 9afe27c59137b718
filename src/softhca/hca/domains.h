/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domains.h - the private halves of protection domains, thread domains, XRC domains and completion
 * channels: what other objects are made in and refer to.
 */
#ifndef SHCA_DOMAINS_H
#define SHCA_DOMAINS_H

#include "context_objects.h"

struct shca_td {
	struct ibv_td ibv;
	struct shca_context_object context_node;
	_Atomic uint32_t refs; /* parent domains that name it */
};

struct shca_pd {
	struct ibv_pd ibv;
	uint32_t pdn;
	_Atomic uint32_t refs;             /* MRs, QPs, SRQs and parent domains in it */
	struct shca_pd *protection_domain; /* domain that a parent domain stands for, or NULL */
	struct shca_td *td;                /* of a parent domain, or NULL */
	struct shca_pd *imported;          /* domain that was imported as this one, or NULL */
	/* Functions of a parent domain that allocate memory for objects in it, or NULL. */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
	struct shca_context_object context_node;
};

/* Returns the domain that an object made in `pd` counts for, and counts the object. */
static inline struct shca_pd *shca_pd_use(struct ibv_pd *pd)
{
	struct shca_pd *counted = (struct shca_pd *)pd;

	if (counted->imported)
		counted = counted->imported;
	atomic_fetch_add(&counted->refs, 1);
	return counted;
}

struct shca_xrcd {
	struct ibv_xrcd ibv;
	struct shca_xrcd_entry *entry;
	uint32_t idx;
	int file;              /* keeps the inode that names the domain; -1: private */
	_Atomic uint32_t refs; /* QPs and SRQs in it */
	struct shca_context_object context_node;
};

struct shca_channel {
	struct ibv_comp_channel ibv;
	uint32_t id; /* number of its event channel (fabric/event.h) */
	struct shca_context_object context_node;
};

#endif
