/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations of memory. */
#ifndef TF_MR_H
#define TF_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <uthash.h>

#include "domain.h"

struct tf_cntr;

/* A key is the adapter's 32 bits, and this one if the target counts operations of peers on the
 * memory (FI_RMA_EVENT): the initiator tells the target of them then. */
#define TF_KEY_EVENTS (UINT64_C(1) << 32)

/* Returns true if a registration can have this key. */
static inline bool tf_key_is_valid(uint64_t key)
{
	return !(key & ~(TF_KEY_EVENTS | UINT32_MAX));
}

/* Returns true if the target counts operations of peers on the memory with this key. */
static inline bool tf_key_has_events(uint64_t key)
{
	return tf_key_is_valid(key) && (key & TF_KEY_EVENTS);
}

struct tf_mr {
	struct fid_mr fid; /* the key is that of tf_domain.mrs, if there is one */
	struct tf_domain *domain;
	struct tq_mr *tq; /* NULL: local buffers, which need no registration */
	void *addr;
	size_t len;
	uint64_t access;
	struct tf_cntr *reads,
		*writes; /* count what peers have done here (FI_RMA_EVENT); or NULL */
	UT_hash_handle hh;
};

/* A domain's functions for registrations. */
extern struct fi_ops_mr tf_mr_ops;

/* Returns the registration of a local buffer that the user has named by its descriptor, for
 * tq_rma(); NULL if there is none that covers the buffer and gives the right. */
struct tq_mr *tf_mr_local(void *desc, const void *addr, size_t len, bool write);

/* Counts a read or a write of a peer that names this key. Called with the domain's lock. */
void tf_mr_count(struct tf_domain *domain, uint64_t key, bool read);

/* Returns the registration with this key if it covers the memory and gives peers the rights in
 * `access`, after setting *error to 0; otherwise NULL, with a negative *error. Called with the
 * domain's lock, which keeps the registration. */
struct tf_mr *tf_mr_find(struct tf_domain *domain, uint64_t key, uint64_t addr, size_t len,
			 uint64_t access, int *error);

#endif
