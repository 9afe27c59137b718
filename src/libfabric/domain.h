/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains: each has an endpoint of libtupleq, on one port of an adapter, which all endpoints of the
 * domain share. So a registration of memory serves each of them.
 */
#ifndef TF_DOMAIN_H
#define TF_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <tupleq/look_up.h>
#include <tupleq/match.h>

#include "object.h"

struct tf_active;
struct tf_contexts;
struct tf_mr;
struct tf_peer;

/* The first field of what libtupleq is given for a send: ends it. Called without a lock. */
struct tf_ending {
	void (*end)(struct tf_ending *ending, int error);
};

struct tf_domain {
	struct fid_domain fid;
	struct tf_fabric *fabric;
	atomic_uint users; /* open objects of the domain */
	struct tq_ep *tq;
	struct tq_locator locator;
	char name[64];
	uint32_t addr_format; /* of the addresses that the user has: see addr.h */
	uint32_t api_version; /* that the caller was built for */
	struct tf_active *active;
	atomic_bool events;   /* the caller has asked for FI_RMA_EVENT */
	bool manual;          /* the caller makes progress, unless something can be slept on */
	pthread_mutex_t lock; /* not held in calls of libtupleq that call match() */
	/* Guarded by the lock: */
	struct tf_peer *peers;        /* hash by locator */
	struct tf_contexts *contexts; /* hash by number */
	struct tf_mr *mrs;            /* hash by key */
	uint32_t next_number;         /* of an endpoint */
	enum tq_thread_duty thread;   /* of the service thread */
};

static inline struct tf_domain *tf_domain_of(struct fid_domain *domain)
{
	return tf_container(domain, struct tf_domain, fid);
}

/* Gives the service thread this duty from now on, unless it has TQ_THREAD_ALL, which is needed
 * because a thread may sleep. */
void tf_domain_need_thread(struct tf_domain *domain, enum tq_thread_duty duty);

/* Makes progress. Called without a lock. */
static inline void tf_domain_progress(struct tf_domain *domain)
{
	tq_progress(domain->tq);
}

#endif
