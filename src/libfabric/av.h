/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address vectors. A fi_addr_t is the index of an entry, whatever the vector's type. Entries are
 * found without the lock, because they never move; the user doesn't use an address that was
 * removed.
 */
#ifndef TF_AV_H
#define TF_AV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>
#include <uthash.h>

#include "addr.h"
#include "contexts.h"
#include "domain.h"
#include "eq.h"
#include "names.h"
#include "peer.h"

#define TF_AV_CHUNK  1024
#define TF_AV_CHUNKS 4096

/* An address that was inserted. */
struct tf_dest {
	struct tf_av *av;
	struct tf_addr addr;
	bool used;
	fi_addr_t index;
	uint32_t number;                /* of the endpoint */
	_Atomic(struct tf_peer *) peer; /* NULL: TF_ADDR_SERVICE, and no answer is there yet */
	struct tf_question question;    /* for the endpoint's address */
	/* The process that was found first, for which the entry stands: another one may have its
	 * name when that one has ended. NULL: none yet */
	_Atomic(struct tq_peer *) tq;
	_Atomic(long long) until; /* when operations no longer wait for it, in ms; 0: none has */
	_Atomic(struct tf_contexts *) contexts; /* NULL: not needed so far */
	atomic_int ranks[TF_KINDS];             /* of the process there, plus one; 0: not joined */
	struct tf_dest *next_free;
	UT_hash_handle hh;
};

struct tf_av {
	struct fid_av fid;
	struct tf_domain *domain;
	atomic_uint users; /* endpoints */
	struct tf_eq *eq;  /* of insertions with FI_EVENT; NULL: none */
	bool events;       /* opened with FI_EVENT */
	_Atomic(struct tf_dest *) chunks[TF_AV_CHUNKS];
	pthread_mutex_t lock;
	/* Guarded by the lock: */
	size_t used; /* entries that were ever used */
	struct tf_dest *free_list;
	struct tf_dest *by_addr; /* hash: the first entry of each address */
};

int tf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
	       void *context);

/* Returns the entry of an address, or NULL if there is none. */
static inline struct tf_dest *tf_av_dest(const struct tf_av *av, fi_addr_t index)
{
	struct tf_dest *chunk;

	if (index >= (fi_addr_t)TF_AV_CHUNK * TF_AV_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&av->chunks[index / TF_AV_CHUNK], memory_order_acquire);
	return chunk && chunk[index % TF_AV_CHUNK].used ? &chunk[index % TF_AV_CHUNK] : NULL;
}

/* Returns the address of the endpoint with this number in that process, or FI_ADDR_NOTAVAIL. Called
 * without libtupleq's lock. */
fi_addr_t tf_av_find(struct tf_av *av, const struct tq_peer *peer, uint32_t number);

/* Sets *peer to the process, once its name in the fabric is known. Returns 0, -FI_EAGAIN, or the
 * error because of which it will not be known. Called without libtupleq's lock. */
int tf_dest_peer(struct tf_dest *dest, struct tf_peer **peer);

/* Returns true if the process that an entry stands for has ended. */
bool tf_dest_is_gone(const struct tf_dest *dest);
/* Sets *peer and *tq to the process, which is looked up, if necessary. The first operations wait
 * for it. Returns 0; -FI_EAGAIN if that takes long; or the error because of which the process can't
 * be reached. Called without a lock. */
int tf_dest_find(struct tf_dest *dest, struct tf_peer **peer, struct tq_peer **tq);

/* Returns the process's rank in the context of this kind of its endpoint's number, or -1 if it has
 * not been joined there. */
static inline int tf_dest_rank(const struct tf_dest *dest, enum tf_kind kind)
{
	return atomic_load_explicit(&dest->ranks[kind], memory_order_acquire) - 1;
}

/* Joins the process `tq` to that context, one of `contexts`, and sets *rank. Returns 0, or
 * tq_ctx_join()'s error, which is *rank then, too. */
int tf_dest_join(struct tf_dest *dest, enum tf_kind kind, struct tf_contexts *contexts,
		 struct tq_peer *tq, int *rank);

/* Sets *ctx and *rank: where messages of this kind to the endpoint are sent. Returns 0; -FI_EAGAIN
 * if the process's address is not there yet; or the error because of which it will not be. */
int tf_dest_resolve(struct tf_dest *dest, enum tf_kind kind, struct tq_ctx **ctx, int *rank);

#endif
