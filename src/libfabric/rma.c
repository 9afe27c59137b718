/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "mr.h"
#include "operation.h"
#include "vector.h"

struct transfer {
	struct tf_operation operation;
	char copy[]; /* the data of an injected write */
};

/* The arguments of a call. */
struct args {
	enum tq_rma_kind kind;
	const struct iovec *iov;
	void **desc;
	size_t count;
	const struct fi_rma_iov *remote;
	size_t remote_count;
	struct tf_operation_args operation;
};

static void free_transfer(struct tf_operation *operation, int error)
{
	(void)error;
	free(tf_container(operation, struct transfer, operation));
}

static void on_done(void *user, int error)
{
	tf_operation_end(user, error);
}

static size_t remote_len(const struct fi_rma_iov *iov, size_t count)
{
	size_t len = 0;

	while (count--) {
		if (__builtin_add_overflow(len, iov[count].len, &len))
			return SIZE_MAX;
	}
	return len;
}

/* Starts a part: `len` bytes, which are in one piece on both sides. */
static int start_part(struct transfer *transfer, const struct args *args, void *local, void *desc,
		      size_t len, uint64_t addr, uint64_t key)
{
	bool read = args->kind == TQ_RMA_READ;
	struct tq_rma rma = {
		.kind = args->kind,
		.local = local,
		.mr = tf_mr_local(desc, local, len, read),
		.len = len,
		.addr = addr,
		.key = (uint32_t)key,
		.done = on_done,
		.user = &transfer->operation,
	};
	int rc;

	if (!tf_key_is_valid(key))
		return -FI_ENOKEY;
	tf_operation_add(&transfer->operation);
	rc = tq_rma(transfer->operation.peer, &rma);
	if (rc)
		atomic_fetch_sub(&transfer->operation.parts, 1);
	return rc;
}

/* Starts all parts. Returns how many, and the error of the one that could not be started. */
static size_t start_parts(struct transfer *transfer, const struct args *args, bool copied,
			  int *error)
{
	size_t parts = 0, here = 0, there = 0, at_here = 0, at_there = 0, copy = 0;

	while (!*error && here < args->count && there < args->remote_count) {
		const struct iovec *iov = &args->iov[here];
		const struct fi_rma_iov *remote = &args->remote[there];
		size_t left = iov->iov_len - at_here, room = remote->len - at_there;
		size_t len = left < room ? left : room;
		void *local = copied ? transfer->copy + copy : (char *)iov->iov_base + at_here;
		void *desc = args->desc && !copied ? args->desc[here] : NULL;

		if (len) {
			*error = start_part(transfer, args, local, desc, len,
					    remote->addr + at_there, remote->key);
			parts += !*error;
		}
		at_here += len;
		at_there += len;
		copy += len;
		if (at_here == iov->iov_len)
			here++, at_here = 0;
		if (at_there == remote->len)
			there++, at_there = 0;
	}
	return parts;
}

static ssize_t start(struct fid_ep *fid, const struct args *args)
{
	bool inject = args->operation.flags & FI_INJECT, read = args->kind == TQ_RMA_READ;
	struct tf_operation_args operation = args->operation;
	struct tf_ep *ep = tf_ep_of(fid);
	size_t parts;
	struct transfer *transfer;
	int rc;

	operation.len = tf_vector_len(args->iov, args->count);
	operation.kind = FI_RMA;
	operation.count = read ? TF_COUNT_READ : TF_COUNT_WRITE;
	if (operation.len > TF_MAX_MESSAGE)
		return -FI_EMSGSIZE;
	if (args->count > TF_IOV_LIMIT || args->remote_count > TF_IOV_LIMIT ||
	    operation.len != remote_len(args->remote, args->remote_count) ||
	    (inject && (read || operation.len > ep->inject_size)))
		return -FI_EINVAL;
	transfer = calloc(1, sizeof(*transfer) + (inject ? operation.len : 0));
	if (!transfer)
		return -FI_EAGAIN;
	transfer->operation.free = free_transfer;
	rc = tf_operation_begin(&transfer->operation, ep, &operation);
	if (rc) {
		free(transfer);
		return rc;
	}
	for (size_t i = 0; i < args->remote_count; i++)
		tf_operation_name(&transfer->operation, args->remote[i].key);
	if (inject)
		tf_vector_gather(args->iov, args->count, transfer->copy);
	parts = start_parts(transfer, args, inject, &rc);
	return tf_operation_started(&transfer->operation, parts, rc);
}

/* ---- the functions of an endpoint ---- */

/* Starts an operation with one piece at the target, as long as all local ones. */
static ssize_t start_plain(struct fid_ep *fid, enum tq_rma_kind kind, const struct iovec *iov,
			   void **desc, size_t count, uint64_t addr, uint64_t key,
			   const struct tf_operation_args *operation)
{
	const struct fi_rma_iov remote = {addr, tf_vector_len(iov, count), key};
	const struct args args = {
		.kind = kind,
		.iov = iov,
		.desc = desc,
		.count = count,
		.remote = &remote,
		.remote_count = 1,
		.operation = *operation,
	};

	return start(fid, &args);
}

static ssize_t read_v(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t target, uint64_t addr, uint64_t key, void *context)
{
	const struct tf_operation_args operation = {
		.target = target,
		.context = context,
		.flags = tf_ep_of(ep)->tx.op_flags,
	};

	return start_plain(ep, TQ_RMA_READ, iov, desc, count, addr, key, &operation);
}

static ssize_t read_one(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t target,
			uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {buf, len};

	return read_v(ep, &iov, &desc, 1, target, addr, key, context);
}

static ssize_t start_message(struct fid_ep *ep, enum tq_rma_kind kind, const struct fi_msg_rma *msg,
			     uint64_t flags)
{
	const struct args args = {
		.kind = kind,
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.count = msg->iov_count,
		.remote = msg->rma_iov,
		.remote_count = msg->rma_iov_count,
		.operation = {.target = msg->addr,
			      .context = msg->context,
			      .data = msg->data,
			      .flags = flags},
	};

	return start(ep, &args);
}

static ssize_t readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return start_message(ep, TQ_RMA_READ, msg, flags);
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return start_message(ep, TQ_RMA_WRITE, msg, flags);
}

static ssize_t write_v(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t target, uint64_t addr, uint64_t key, void *context)
{
	const struct tf_operation_args operation = {
		.target = target,
		.context = context,
		.flags = tf_ep_of(ep)->tx.op_flags,
	};

	return start_plain(ep, TQ_RMA_WRITE, iov, desc, count, addr, key, &operation);
}

static ssize_t write_one(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t target, uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return write_v(ep, &iov, &desc, 1, target, addr, key, context);
}

static ssize_t writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			 fi_addr_t target, uint64_t addr, uint64_t key, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct tf_operation_args operation = {
		.target = target,
		.context = context,
		.data = data,
		.flags = tf_ep_of(ep)->tx.op_flags | FI_REMOTE_CQ_DATA,
	};

	return start_plain(ep, TQ_RMA_WRITE, &iov, &desc, 1, addr, key, &operation);
}

static ssize_t injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			  fi_addr_t target, uint64_t addr, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct tf_operation_args operation = {
		.target = target,
		.data = data,
		.flags = FI_INJECT | FI_REMOTE_CQ_DATA,
		.quiet = true,
	};

	return start_plain(ep, TQ_RMA_WRITE, &iov, NULL, 1, addr, key, &operation);
}

static ssize_t inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t target,
		      uint64_t addr, uint64_t key)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct tf_operation_args operation = {
		.target = target,
		.flags = FI_INJECT,
		.quiet = true,
	};

	return start_plain(ep, TQ_RMA_WRITE, &iov, NULL, 1, addr, key, &operation);
}

struct fi_ops_rma tf_rma_ops = {
	.size = sizeof(tf_rma_ops),
	.read = read_one,
	.readv = read_v,
	.readmsg = readmsg,
	.write = write_one,
	.writev = write_v,
	.writemsg = writemsg,
	.inject = inject,
	.writedata = writedata,
	.injectdata = injectdata,
};
