/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider of libfabric on a libtupleq that is the fuzzer (tupleq.h): requests for atomic
 * operations, answers, and messages with any header, between the user's receives, searches, atomic
 * operations and registrations.
 *
 * A request changes only registered memory that it may change, and gets one answer, with the old
 * items or an error. Each operation of the user ends once. Closing comes to an end, and leaves
 * nothing behind.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../expect.h"
#include "active.h"
#include "addr.h"
#include "arith/arith.h"
#include "fabric.h"
#include "info.h"
#include "input.h"
#include "tupleq.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REGIONS 4
#define OPS     100

/* Memory that peers may use as the registration says. */
struct region {
	uint64_t access; /* 0: not registered */
	size_t len;
	unsigned char *mem, *before;
	struct fid_mr *mr;
};

/* An operation of the user. The memory is exactly as long as the operation says, and is freed when
 * the operation has ended. */
struct op {
	struct fi_context context;
	bool started, ended, multi;
	void *mem;
};

static struct run {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peers[FAKE_PEERS];
	struct region regions[REGIONS];
	struct op ops[OPS];
	unsigned nops;
} run;

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

/* ---- the user's objects ---- */

static void open_regions(void)
{
	static const struct region kinds[REGIONS] = {
		{.access = FI_REMOTE_READ | FI_REMOTE_WRITE, .len = TF_ATOMIC_MAX + 40},
		{.access = FI_REMOTE_READ, .len = 64},
		{.access = FI_REMOTE_WRITE, .len = 100},
		{.len = 64},
	};

	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *region = &run.regions[i];

		*region = kinds[i];
		region->mem = malloc(region->len);
		region->before = malloc(region->len);
		memset(region->mem, (int)i + 1, region->len);
		if (region->access)
			t_ok(fi_mr_reg(run.domain, region->mem, region->len, region->access, 0, 0,
				       0, &region->mr, NULL));
	}
}

static void open_all(void)
{
	struct fi_fabric_attr fabric = {.api_version = FI_VERSION(1, 17)};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	run = (struct run){0};
	t_ok(tf_getinfo(fabric.api_version, NULL, NULL, 0, NULL, &run.info));
	run.info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	t_ok(tf_fabric_open(&fabric, &run.fabric, NULL));
	t_ok(fi_domain(run.fabric, run.info, &run.domain, NULL));
	t_ok(fi_av_open(run.domain, &av, &run.av, NULL));
	t_ok(fi_cq_open(run.domain, &cq, &run.cq, NULL));
	t_ok(fi_endpoint(run.domain, run.info, &run.ep, NULL));
	t_ok(fi_ep_bind(run.ep, &run.av->fid, 0));
	t_ok(fi_ep_bind(run.ep, &run.cq->fid, FI_TRANSMIT | FI_RECV));
	t_ok(fi_enable(run.ep));
	for (unsigned i = 0; i < FAKE_PEERS; i++) {
		const struct tq_locator locator = fake_locator(i);
		const struct tf_addr addr = tf_addr_make(&locator, 0);

		t_eq(fi_av_insert(run.av, &addr, 1, &run.peers[i], 0, NULL), 1);
	}
	open_regions();
}

/* ---- the user's operations ---- */

static void end(void *context, uint64_t flags)
{
	struct op *op = context;

	if (!op)
		return; /* a peer's */
	t_holds(op >= run.ops && op < run.ops + run.nops);
	t_true(op->started && !op->ended, "an operation ended twice");
	if (op->multi && !(flags & FI_MULTI_RECV))
		return; /* one message of several */
	op->ended = true;
	free(op->mem);
}

static void read_completions(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t n;

	while ((n = fi_cq_read(run.cq, &entry, 1)) != -FI_EAGAIN) {
		if (n == 1) {
			end(entry.op_context, entry.flags);
			continue;
		}
		t_eq(fi_cq_readerr(run.cq, &error, 0), 1);
		end(error.op_context, error.flags);
	}
}

static fi_addr_t choose_peer(struct input *in)
{
	uint8_t b = input_byte(in);

	return b & 4 ? FI_ADDR_UNSPEC : run.peers[b % FAKE_PEERS];
}

/* Receives, or looks for a message, in one of the ways that there are. */
static ssize_t receive(struct input *in, struct op *op)
{
	static const uint64_t ways[] = {0, 0, FI_PEEK, FI_PEEK | FI_DISCARD, FI_MULTI_RECV};
	uint64_t flags = ways[input_below(in, 5)];
	size_t len = input_byte(in);
	struct iovec iov[2] = {{NULL, len / 3}, {NULL, len - len / 3}};
	const struct fi_msg msg = {.msg_iov = iov,
				   .iov_count = flags & FI_MULTI_RECV ? 1 : 2,
				   .addr = choose_peer(in),
				   .context = op};
	const struct fi_msg_tagged tagged = {.msg_iov = iov,
					     .iov_count = input_below(in, 3),
					     .addr = msg.addr,
					     .tag = input_below(in, 4),
					     .ignore = input_below(in, 2),
					     .context = op};

	op->mem = malloc(len + !len);
	iov[0].iov_base = op->mem;
	iov[1].iov_base = (char *)op->mem + len / 3;
	op->multi = flags & FI_MULTI_RECV;
	if (op->multi)
		iov[0].iov_len = len;
	return op->multi || input_below(in, 2) ? fi_recvmsg(run.ep, &msg, flags)
					       : fi_trecvmsg(run.ep, &tagged, flags);
}

/* Takes a message out of the queues, which is received or dropped at once, or when the endpoint is
 * closed. */
static ssize_t claim(struct input *in, struct op *op)
{
	struct iovec iov = {malloc(20), 20};
	const struct fi_msg_tagged msg = {.msg_iov = &iov,
					  .iov_count = 1,
					  .addr = FI_ADDR_UNSPEC,
					  .ignore = UINT64_MAX,
					  .context = op};
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	uint8_t b = input_byte(in);
	ssize_t rc;

	op->mem = iov.iov_base;
	read_completions();
	rc = fi_trecvmsg(run.ep, &msg, FI_PEEK | FI_CLAIM);
	if (rc)
		return rc;
	rc = fi_cq_read(run.cq, &entry, 1);
	if (rc == -FI_EAVAIL) {
		t_eq(fi_cq_readerr(run.cq, &error, 0), 1);
		t_eq(error.err, FI_ENOMSG);
		return -FI_ENOMSG;
	}
	t_eq(rc, 1);
	t_true(entry.op_context == op, "the completion is that of another operation");
	/* Otherwise the message is dropped with the endpoint. */
	return b & 1 ? fi_trecvmsg(run.ep, &msg,
				   FI_CLAIM | (b & 2 ? FI_DISCARD : 0) | FI_COMPLETION)
		     : -FI_ENOMSG;
}

/* Starts an operation on a peer's memory; the fuzzer answers. */
static ssize_t change_peer(struct input *in, struct op *op)
{
	size_t n = input_below(in, 20);

	op->mem = calloc(3 * n + !n, 8);
	return fi_compare_atomic(run.ep, op->mem, n, NULL, (char *)op->mem + 8 * n, NULL,
				 (char *)op->mem + 16 * n, NULL, run.peers[input_below(in, 2)],
				 input_long(in), input_long(in), FI_UINT64, FI_CSWAP, op);
}

static void do_op(struct input *in, ssize_t (*fn)(struct input *in, struct op *op))
{
	struct op *op = &run.ops[run.nops];

	if (run.nops == OPS)
		return;
	run.nops++;
	op->started = true;
	if (fn(in, op)) {
		op->started = false;
		free(op->mem);
	}
}

static void cancel(struct input *in)
{
	if (run.nops)
		fi_cancel(&run.ep->fid, &run.ops[input_byte(in) % run.nops]);
}

static void reregister(struct input *in)
{
	struct region *region = &run.regions[input_below(in, REGIONS)];

	if (region->mr) {
		t_ok(fi_close(&region->mr->fid));
		region->mr = NULL;
	} else if (region->access) {
		t_ok(fi_mr_reg(run.domain, region->mem, region->len, region->access, 0, 0, 0,
			       &region->mr, NULL));
	}
}

/* ---- what peers send ---- */

/* Returns the region in which a request may do what it wants; NULL: nowhere. */
static struct region *allowed(const struct tf_request *request, size_t len)
{
	size_t size, items;
	uint64_t access;

	if (request->kind != TF_REQUEST_ATOMIC || !arith_is_valid(request->op, request->type))
		return NULL;
	size = arith_size(request->type);
	items = size * request->count;
	if (items > TF_ATOMIC_MAX || len != (request->op >= ARITH_CSWAP ? 2 : 1) * items)
		return NULL;
	access = (request->op == ARITH_READ ? 0 : FI_REMOTE_WRITE) |
		 (request->flags & TF_REQUEST_FETCH ? FI_REMOTE_READ : 0);
	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *region = &run.regions[i];
		uint64_t first = (uintptr_t)region->mem;

		if (region->mr && fi_mr_key(region->mr) == request->key &&
		    (access & ~region->access) == 0 && request->addr >= first &&
		    request->addr - first <= region->len &&
		    items <= region->len - (request->addr - first))
			return region;
	}
	return NULL;
}

/* Expects that only what the request names has changed, and that it was answered. */
static void check_request(const struct tf_request *request, const struct region *target)
{
	size_t items = target ? arith_size(request->type) * request->count : 0;
	size_t at = target ? request->addr - (uintptr_t)target->mem : 0;
	const struct fake_answer *answer = fake_answer();

	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *region = &run.regions[i];

		if (region != target) {
			t_mem_eq(region->mem, region->before, region->len);
			continue;
		}
		t_mem_eq(region->mem, region->before, at);
		t_mem_eq(region->mem + at + items, region->before + at + items,
			 region->len - at - items);
	}
	t_eq(answer->count, request->ticket != 0);
	if (!request->ticket || request->kind != TF_REQUEST_ATOMIC)
		return;
	t_eq(answer->error == 0, target != NULL);
	t_eq(answer->len, target && (request->flags & TF_REQUEST_FETCH) ? items : 0);
	if (answer->len)
		t_mem_eq(answer->data, target->before + at, items);
}

/* Chooses an address near a region's ends, or any, and a key. */
static void choose_place(struct input *in, struct tf_request *request)
{
	const struct region *region = &run.regions[input_below(in, REGIONS)];
	uint8_t b = input_byte(in);

	request->addr = b < 250 ? (uintptr_t)region->mem + (b & 1 ? region->len : 0) +
					  (uint64_t)(int64_t)(int32_t)input_number(in)
				: input_long(in);
	request->key = region->mr && b % 8 ? fi_mr_key(region->mr) : input_long(in);
}

/* A request comes, with data of the right length or of another one. */
static void ask(struct input *in)
{
	struct tf_request request = {
		.kind = (uint8_t)input_below(in, TF_REQUEST_KINDS + 1),
		.flags = input_byte(in),
		.op = (uint8_t)input_below(in, ARITH_OPS + 1),
		.type = (uint8_t)input_below(in, ARITH_TYPES + 1),
		.endpoint = input_number(in),
		.data = input_long(in),
		.ticket = input_number(in),
		.count = input_number(in),
	};
	static unsigned char data[TF_REQUEST_MAX + 300];
	const struct region *target;
	size_t len = input_number(in);

	choose_place(in, &request);
	if (request.type < ARITH_TYPES && request.count <= TF_ATOMIC_MAX && len < 200)
		len = arith_size(request.type) * request.count *
		      (request.op >= ARITH_CSWAP ? 2 : 1);
	len %= sizeof(data);
	input_bytes(in, data, 64);
	/* Messages that are under way come first. */
	fake_deliver_all();
	for (unsigned i = 0; i < REGIONS; i++)
		memcpy(run.regions[i].before, run.regions[i].mem, run.regions[i].len);
	fake_forget_answer();
	target = allowed(&request, len);
	fake_message(FAKE_REQUESTS, input_below(in, FAKE_PEERS), 0, &request, data, len);
	fake_deliver_all();
	check_request(&request, target);
}

/* An answer comes, perhaps to a request of this process. */
static void answer(struct input *in)
{
	static const unsigned char data[TF_REQUEST_MAX];
	const struct tf_answer header = {.error = input_long(in)};
	uint64_t ticket = input_long(in);
	size_t len = input_number(in);

	fake_message(FAKE_ANSWERS, input_below(in, FAKE_PEERS), ticket, &header, data,
		     len % sizeof(data));
}

/* A message comes, for an endpoint that is there or isn't. */
static void message(struct input *in)
{
	static const unsigned char data[1000];
	const struct tf_header header = {
		.endpoint = input_below(in, 3),
		.flags = input_number(in),
		.data = input_long(in),
	};
	uint64_t bits = input_below(in, 5);
	size_t len = input_number(in);

	fake_message(input_below(in, 3), input_below(in, FAKE_PEERS), bits, &header, data,
		     len % sizeof(data));
}

/* ---- a run ---- */

static void step(struct input *in)
{
	switch (input_below(in, 12)) {
	case 0:
	case 1:
	case 2:
		ask(in);
		break;
	case 3:
		answer(in);
		break;
	case 4:
	case 5:
		message(in);
		break;
	case 6:
		do_op(in, receive);
		break;
	case 7:
		do_op(in, change_peer);
		break;
	case 8:
		do_op(in, claim);
		break;
	case 9:
		input_below(in, 2) ? cancel(in) : reregister(in);
		break;
	case 10:
		fake_deliver(input_byte(in) % 8 == 7);
		break;
	case 11:
		read_completions();
	}
}

static void close_all(void)
{
	fake_drain();
	read_completions();
	t_ok(fi_close(&run.ep->fid));
	t_ok(fi_close(&run.cq->fid));
	t_ok(fi_close(&run.av->fid));
	for (unsigned i = 0; i < REGIONS; i++) {
		if (run.regions[i].mr)
			t_ok(fi_close(&run.regions[i].mr->fid));
		free(run.regions[i].mem);
		free(run.regions[i].before);
	}
	t_ok(fi_close(&run.domain->fid));
	t_ok(fi_close(&run.fabric->fid));
	fi_freeinfo(run.info);
	/* Receives that nothing has come for end with the endpoint, without a completion. */
	for (unsigned i = 0; i < run.nops; i++) {
		if (run.ops[i].started && !run.ops[i].ended)
			free(run.ops[i].mem);
	}
	tf_info_cleanup();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	fake_start();
	open_all();
	while (in.left)
		step(&in);
	close_all();
	fake_nothing_left();
	return 0;
}
