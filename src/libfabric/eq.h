/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: insertions into address vectors that end, and what the user writes. */
#ifndef TF_EQ_H
#define TF_EQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "object.h"
#include "wait.h"

struct tf_event;

struct tf_eq {
	struct fid_eq fid;
	struct tf_fabric *fabric;
	atomic_uint users; /* objects that report here */
	struct tf_wait wait;
	bool writable; /* by the user (FI_WRITE) */
	size_t size;
	pthread_mutex_t lock;
	/* Guarded by the lock: */
	struct tf_event *events; /* list */
	size_t count;
};

int tf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
	       void *context);
int tf_eq_trywait(struct fid *fid);
/* Adds an event. Returns 0 or -FI_ENOMEM. */
int tf_eq_add(struct tf_eq *eq, uint32_t event, const void *data, size_t len);
/* Adds an error. */
int tf_eq_add_error(struct tf_eq *eq, const struct fi_eq_err_entry *error);

#endif
