/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending messages. */
#ifndef TF_SEND_H
#define TF_SEND_H

#include <sys/types.h>
#include <sys/uio.h>

#include "ep.h"

/* A message to be sent. */
struct tf_send_args {
	enum tf_kind kind;
	const struct iovec *iov;
	size_t count;
	fi_addr_t dest;
	uint64_t tag, data;
	uint64_t flags; /* FI_REMOTE_CQ_DATA, FI_INJECT, FI_COMPLETION and so on */
	bool quiet;     /* success is never reported: fi_inject() */
	void *context;
};

/* Starts a send. Returns 0 or a negative error. */
ssize_t tf_send(struct tf_ep *ep, const struct tf_send_args *args);

#endif
