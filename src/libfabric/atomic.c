/* SPDX-License-Identifier: BSD-3-Clause */
#include "atomic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith/arith.h"
#include "operation.h"
#include "target.h"
#include "vector.h"

_Static_assert((int)ARITH_INT8 == FI_INT8 && (int)ARITH_UINT64 == FI_UINT64 &&
		       (int)ARITH_LONG_DOUBLE_COMPLEX == FI_LONG_DOUBLE_COMPLEX &&
		       (int)ARITH_UINT128 == FI_UINT128,
	       "types have libfabric's numbers");
_Static_assert((int)ARITH_MIN == FI_MIN && (int)ARITH_READ == FI_ATOMIC_READ &&
		       (int)ARITH_CSWAP == FI_CSWAP && (int)ARITH_MSWAP == FI_MSWAP,
	       "operations have libfabric's numbers");

/* The families of functions. */
enum family { BASE, FETCH, COMPARE };

/* A list of items, in pieces. */
struct items {
	const struct fi_ioc *iov;
	size_t count;
};

/* The arguments of a call. */
struct args {
	enum family family;
	enum fi_datatype type;
	enum fi_op op;
	struct items own, compare, result;
	const struct fi_rma_ioc *remote;
	size_t remote_count;
	struct tf_operation_args operation;
};

struct part {
	struct tf_call call;
	struct tf_operation *operation;
};

struct atomic {
	struct tf_operation operation;
	size_t size;                         /* of an item */
	struct fi_ioc results[TF_IOV_LIMIT]; /* where the old items go */
	size_t nresults;
	struct part parts[TF_IOV_LIMIT];
	size_t len;                /* of all items */
	_Alignas(16) char items[]; /* own ones, those to compare with, old ones */
};

/* ---- which operations there are ---- */

static bool has(enum family family, enum fi_op op, enum fi_datatype type)
{
	if (!arith_is_valid(op, type))
		return false;
	if (family == COMPARE)
		return op >= FI_CSWAP;
	return op < FI_CSWAP && (family == FETCH || op != FI_ATOMIC_READ);
}

static int valid(enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!count)
		return -FI_EINVAL;
	if (!has(family, op, type))
		return -FI_EOPNOTSUPP;
	*count = TF_ATOMIC_MAX / arith_size(type);
	return 0;
}

static int writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(BASE, type, op, count);
}

static int readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(FETCH, type, op, count);
}

static int compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(COMPARE, type, op, count);
}

int tf_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		    struct fi_atomic_attr *attr, uint64_t flags)
{
	enum family family = flags & FI_COMPARE_ATOMIC ? COMPARE
			     : flags & FI_FETCH_ATOMIC ? FETCH
						       : BASE;
	int rc;

	(void)domain;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if (!attr || (flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC)) ||
	    flags == (FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
		return -FI_EINVAL;
	rc = valid(family, type, op, &attr->count);
	if (!rc)
		attr->size = arith_size(type);
	return rc;
}

/* ---- items in pieces ---- */

static size_t number(const struct items *items)
{
	size_t n = 0;

	for (size_t i = 0; i < items->count; i++)
		n += items->iov[i].count;
	return n;
}

static size_t remote_number(const struct args *args)
{
	size_t n = 0;

	for (size_t i = 0; i < args->remote_count; i++)
		n += args->remote[i].count;
	return n;
}

static void gather(const struct items *items, size_t size, char *to)
{
	for (size_t i = 0; i < items->count; i++) {
		memcpy(to, items->iov[i].addr, items->iov[i].count * size);
		to += items->iov[i].count * size;
	}
}

static void scatter(const struct atomic *atomic, const char *from)
{
	for (size_t i = 0; i < atomic->nresults; i++) {
		size_t len = atomic->results[i].count * atomic->size;

		memcpy(atomic->results[i].addr, from, len);
		from += len;
	}
}

/* ---- operations ---- */

static void free_atomic(struct tf_operation *operation, int error)
{
	struct atomic *atomic = tf_container(operation, struct atomic, operation);

	if (!error)
		scatter(atomic, atomic->items + 2 * atomic->len);
	free(atomic);
}

static void on_answer(struct tf_call *call, int error)
{
	struct part *part = tf_container(call, struct part, call);

	tf_operation_end(part->operation, error);
}

/* Returns the bytes of all items, or 0 if the lists don't fit each other or are too long. */
static size_t length_of(const struct args *args)
{
	size_t n = remote_number(args), size = arith_size(args->type);

	if (args->own.count > TF_IOV_LIMIT || args->compare.count > TF_IOV_LIMIT ||
	    args->result.count > TF_IOV_LIMIT || args->remote_count > TF_IOV_LIMIT ||
	    n > TF_ATOMIC_MAX / size)
		return 0;
	if ((args->op != FI_ATOMIC_READ && number(&args->own) != n) ||
	    (args->family == COMPARE && number(&args->compare) != n) ||
	    (args->family != BASE && number(&args->result) != n))
		return 0;
	return n * size;
}

/* Starts a part, whose items begin at `at`. */
static int start_part(struct atomic *atomic, const struct args *args, size_t i, size_t at)
{
	size_t len = args->remote[i].count * atomic->size;
	const struct iovec data[] = {{atomic->items + at, len},
				     {atomic->items + atomic->len + at, len}};
	struct part *part = &atomic->parts[i];
	struct tf_request request = {
		.kind = TF_REQUEST_ATOMIC,
		.flags = args->family == BASE ? 0 : TF_REQUEST_FETCH,
		.op = args->op,
		.type = args->type,
		.endpoint = atomic->operation.number,
		.addr = args->remote[i].addr,
		.key = args->remote[i].key,
		.count = args->remote[i].count,
	};
	int rc;

	part->call.end = on_answer;
	part->call.expected = args->family == BASE ? 0 : len;
	part->operation = &atomic->operation;
	tf_operation_add(&atomic->operation);
	rc = tf_active_send(atomic->operation.op.ep->domain, atomic->operation.peer, &request, data,
			    args->family == COMPARE ? 2 : 1, &part->call,
			    atomic->items + 2 * atomic->len + at);
	if (rc)
		atomic_fetch_sub(&atomic->operation.parts, 1);
	return rc;
}

/* Copies the items and lists, which the user may change or free when the call returns. */
static void copy_args(struct atomic *atomic, const struct args *args)
{
	if (args->op != FI_ATOMIC_READ)
		gather(&args->own, atomic->size, atomic->items);
	if (args->family == COMPARE)
		gather(&args->compare, atomic->size, atomic->items + atomic->len);
	if (args->family == BASE)
		return;
	atomic->nresults = args->result.count;
	memcpy(atomic->results, args->result.iov, args->result.count * sizeof(*atomic->results));
}

static ssize_t start(struct fid_ep *fid, const struct args *args)
{
	struct tf_operation_args operation = args->operation;
	size_t parts = 0, at = 0, len;
	struct atomic *atomic;
	int rc;

	if (!has(args->family, args->op, args->type))
		return -FI_EOPNOTSUPP;
	len = length_of(args);
	if (!len)
		return -FI_EINVAL;
	atomic = calloc(1, sizeof(*atomic) + 3 * len);
	if (!atomic)
		return -FI_EAGAIN;
	atomic->operation.free = free_atomic;
	atomic->size = arith_size(args->type);
	atomic->len = len;
	operation.kind = FI_ATOMIC;
	operation.count = args->family == BASE ? TF_COUNT_WRITE : TF_COUNT_READ;
	operation.len = len;
	rc = tf_operation_begin(&atomic->operation, tf_ep_of(fid), &operation);
	if (rc) {
		free(atomic);
		return rc;
	}
	for (size_t i = 0; i < args->remote_count; i++)
		tf_operation_name(&atomic->operation, args->remote[i].key);
	copy_args(atomic, args);
	for (size_t i = 0; i < args->remote_count && !rc; i++) {
		if (!args->remote[i].count)
			continue;
		rc = start_part(atomic, args, i, at);
		parts += !rc;
		at += args->remote[i].count * atomic->size;
	}
	return tf_operation_started(&atomic->operation, parts, rc);
}

/* ---- the functions of an endpoint ---- */

/* Starts an operation with one piece at the target. The lists and what else the call says are those
 * of `args`. */
static ssize_t start_plain(struct fid_ep *ep, const struct args *args, uint64_t addr, uint64_t key)
{
	const struct items *items = args->family == BASE ? &args->own : &args->result;
	const struct fi_rma_ioc remote = {addr, number(items), key};
	struct args all = *args;

	all.remote = &remote;
	all.remote_count = 1;
	return start(ep, &all);
}

static ssize_t write_v(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		       fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
		       enum fi_op op, void *context)
{
	const struct args args = {
		.family = BASE,
		.type = type,
		.op = op,
		.own = {iov, count},
		.operation = {.target = target,
			      .context = context,
			      .flags = tf_ep_of(ep)->tx.op_flags},
	};

	(void)desc;
	return start_plain(ep, &args, addr, key);
}

static ssize_t write_one(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
			 enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};

	return write_v(ep, &iov, &desc, 1, target, addr, key, type, op, context);
}

static ssize_t inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t target,
		      uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct args args = {
		.family = BASE,
		.type = type,
		.op = op,
		.own = {&iov, 1},
		.operation = {.target = target, .flags = FI_INJECT, .quiet = true},
	};

	return start_plain(ep, &args, addr, key);
}

static ssize_t readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			  struct fi_ioc *result, void **result_desc, size_t result_count,
			  fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
			  enum fi_op op, void *context)
{
	const struct args args = {
		.family = FETCH,
		.type = type,
		.op = op,
		.own = {iov, count},
		.result = {result, result_count},
		.operation = {.target = target,
			      .context = context,
			      .flags = tf_ep_of(ep)->tx.op_flags},
	};

	(void)desc;
	(void)result_desc;
	return start_plain(ep, &args, addr, key);
}

static ssize_t readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			 void *result_desc, fi_addr_t target, uint64_t addr, uint64_t key,
			 enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	struct fi_ioc to = {result, count};

	return readwritev(ep, &iov, &desc, 1, &to, &result_desc, 1, target, addr, key, type, op,
			  context);
}

static ssize_t compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			  const struct fi_ioc *compare, void **compare_desc, size_t compare_count,
			  struct fi_ioc *result, void **result_desc, size_t result_count,
			  fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
			  enum fi_op op, void *context)
{
	const struct args args = {
		.family = COMPARE,
		.type = type,
		.op = op,
		.own = {iov, count},
		.compare = {compare, compare_count},
		.result = {result, result_count},
		.operation = {.target = target,
			      .context = context,
			      .flags = tf_ep_of(ep)->tx.op_flags},
	};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return start_plain(ep, &args, addr, key);
}

static ssize_t compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 const void *compare, void *compare_desc, void *result, void *result_desc,
			 fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
			 enum fi_op op, void *context)
{
	const struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
	const struct fi_ioc with = {(void *)(uintptr_t)compare, count};
	struct fi_ioc to = {result, count};

	return compwritev(ep, &iov, &desc, 1, &with, &compare_desc, 1, &to, &result_desc, 1, target,
			  addr, key, type, op, context);
}

/* Returns the arguments of a call that has them in a message. */
static struct args args_of(enum family family, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return (struct args){
		.family = family,
		.type = msg->datatype,
		.op = msg->op,
		.own = {msg->msg_iov, msg->iov_count},
		.remote = msg->rma_iov,
		.remote_count = msg->rma_iov_count,
		.operation = {.target = msg->addr,
			      .context = msg->context,
			      .data = msg->data,
			      .flags = flags},
	};
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	const struct args args = args_of(BASE, msg, flags);

	return start(ep, &args);
}

static ssize_t readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			    struct fi_ioc *result, void **result_desc, size_t result_count,
			    uint64_t flags)
{
	struct args args = args_of(FETCH, msg, flags);

	(void)result_desc;
	args.result = (struct items){result, result_count};
	return start(ep, &args);
}

static ssize_t compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			    const struct fi_ioc *compare, void **compare_desc, size_t compare_count,
			    struct fi_ioc *result, void **result_desc, size_t result_count,
			    uint64_t flags)
{
	struct args args = args_of(COMPARE, msg, flags);

	(void)compare_desc;
	(void)result_desc;
	args.compare = (struct items){compare, compare_count};
	args.result = (struct items){result, result_count};
	return start(ep, &args);
}

struct fi_ops_atomic tf_atomic_ops = {
	.size = sizeof(tf_atomic_ops),
	.write = write_one,
	.writev = write_v,
	.writemsg = writemsg,
	.inject = inject,
	.readwrite = readwrite,
	.readwritev = readwritev,
	.readwritemsg = readwritemsg,
	.compwrite = compwrite,
	.compwritev = compwritev,
	.compwritemsg = compwritemsg,
	.writevalid = writevalid,
	.readwritevalid = readwritevalid,
	.compwritevalid = compwritevalid,
};
