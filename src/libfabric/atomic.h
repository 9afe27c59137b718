/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations. The target's process carries them out, whatever the adapter can do: adapters
 * have two of the operations, whose results are not atomic with those of a CPU.
 */
#ifndef TF_ATOMIC_H
#define TF_ATOMIC_H

#include <rdma/fi_atomic.h>

/* An endpoint's functions. */
extern struct fi_ops_atomic tf_atomic_ops;

/* Tells which operations there are (fi_query_atomic()). */
int tf_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		    struct fi_atomic_attr *attr, uint64_t flags);

#endif
