/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of completions. */
#ifndef TF_CNTR_H
#define TF_CNTR_H

#include <stdatomic.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "domain.h"
#include "wait.h"

struct tf_cntr {
	struct fid_cntr fid;
	struct tf_domain *domain;
	atomic_uint users; /* endpoints and registrations */
	_Atomic(uint64_t) value, errors;
	struct tf_wait wait;
};

int tf_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		 void *context);
int tf_cntr_trywait(struct fid *fid);
/* Counts an operation that has ended, successfully or not. `cntr` may be NULL. */
void tf_cntr_count(struct tf_cntr *cntr, bool error);

#endif
