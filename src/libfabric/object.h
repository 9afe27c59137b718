/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions and macros for all objects of libfabric; and fabrics, which only count their users. */
#ifndef TF_OBJECT_H
#define TF_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

/* The object of type `type` whose `field` is at `pointer`. */
#define tf_container(pointer, type, field) ((type *)((char *)(pointer)-offsetof(type, field)))

/* Functions of objects that have none: return -FI_ENOSYS. */
int tf_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int tf_no_control(struct fid *fid, int command, void *arg);
int tf_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* A fabric: what processes share that reach each other. */
struct tf_fabric {
	struct fid_fabric fid;
	atomic_uint users; /* open domains and event queues */
};

static inline struct tf_fabric *tf_fabric_of(struct fid_fabric *fabric)
{
	return tf_container(fabric, struct tf_fabric, fid);
}

#endif
