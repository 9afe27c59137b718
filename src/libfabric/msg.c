/* SPDX-License-Identifier: BSD-3-Clause */
#include "msg.h"

#include "peek.h"
#include "recv.h"
#include "send.h"

/* ---- receiving ---- */

static ssize_t recv_msg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	const struct tf_recv_args args = {
		.kind = TF_MSG,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.source = msg->addr,
		.flags = flags,
		.context = msg->context,
	};

	return tf_recv_or_peek(tf_ep_of(fid), &args);
}

static ssize_t recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t source, void *context)
{
	const struct tf_recv_args args = {
		.kind = TF_MSG,
		.iov = iov,
		.count = count,
		.source = source,
		.flags = tf_ep_of(fid)->rx.op_flags,
		.context = context,
	};

	(void)desc;
	return tf_recv(tf_ep_of(fid), &args);
}

static ssize_t recv_one(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t source,
			void *context)
{
	const struct iovec iov = {buf, len};

	return recvv(fid, &iov, &desc, 1, source, context);
}

/* ---- sending ---- */

static ssize_t send_msg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	const struct tf_send_args args = {
		.kind = TF_MSG,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.dest = msg->addr,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
	};

	return tf_send(tf_ep_of(fid), &args);
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t dest, void *context)
{
	const struct tf_send_args args = {
		.kind = TF_MSG,
		.iov = iov,
		.count = count,
		.dest = dest,
		.flags = tf_ep_of(fid)->tx.op_flags & ~FI_REMOTE_CQ_DATA,
		.context = context,
	};

	(void)desc;
	return tf_send(tf_ep_of(fid), &args);
}

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
			void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};

	return sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			fi_addr_t dest, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct tf_send_args args = {
		.kind = TF_MSG,
		.iov = &iov,
		.count = 1,
		.dest = dest,
		.data = data,
		.flags = tf_ep_of(fid)->tx.op_flags | FI_REMOTE_CQ_DATA,
		.context = context,
	};

	(void)desc;
	return tf_send(tf_ep_of(fid), &args);
}

static ssize_t inject_with(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			   uint64_t flags, fi_addr_t dest)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	const struct tf_send_args args = {
		.kind = TF_MSG,
		.iov = &iov,
		.count = 1,
		.dest = dest,
		.data = data,
		.flags = FI_INJECT | flags,
		.quiet = true,
	};

	return tf_send(tf_ep_of(fid), &args);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return inject_with(fid, buf, len, 0, 0, dest);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			  fi_addr_t dest)
{
	return inject_with(fid, buf, len, data, FI_REMOTE_CQ_DATA, dest);
}

struct fi_ops_msg tf_msg_ops = {
	.size = sizeof(tf_msg_ops),
	.recv = recv_one,
	.recvv = recvv,
	.recvmsg = recv_msg,
	.send = send_one,
	.sendv = sendv,
	.sendmsg = send_msg,
	.inject = inject,
	.senddata = senddata,
	.injectdata = injectdata,
};
