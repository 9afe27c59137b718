/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* The timer of libtupleq's connections, and its time-out (parameters rnr_timer and timeout). */
#define RNR_TIMER         1
#define TIMEOUT           14
#define RETRIES           7
#define RNR_RETRY_FOREVER 7

/* Inline data that short messages of the measurements have room in. */
#define INLINE_WANTED 64

/* Empty polls after which a process that waits yields its CPU. */
#define POLLS 256

/* Empty polls before a wait ends, whatever the time is. An adapter makes them in some milliseconds.
 * In softhca's virtual time ten seconds pass in less, and the end of a process takes real time. */
#define LEAST_POLLS (1u << 16)

/* How long to wait for what must come, and for what must not. */
#define DEADLINE_NS (10 * UINT64_C(1000000000))
#define WAITING_NS  (20 * UINT64_C(1000000))

#define MEMORY (2 * END_SLOTS * END_SLOT + END_SLOT)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool end_fail(struct end *end, int error, const char *format, ...)
{
	va_list args;
	size_t used;

	va_start(args, format);
	vsnprintf(end->why, sizeof(end->why), format, args);
	va_end(args);
	used = strlen(end->why);
	if (error)
		snprintf(end->why + used, sizeof(end->why) - used, " fails (%s)", strerror(error));
	end->error = error;
	return false;
}

/* Makes the memory of the slots. */
static bool make_memory(struct end *end)
{
	int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	void *memory =
		mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return end_fail(end, errno, "mmap() of %u bytes", MEMORY);
	end->out = memory;
	end->in = end->out + END_SLOTS * END_SLOT;
	end->rest = end->in + END_SLOTS * END_SLOT;
	if (end->port->attr.atomic_cap != IBV_ATOMIC_NONE)
		rights |= IBV_ACCESS_REMOTE_ATOMIC;
	end->memory = ibv_reg_mr(end->pd, memory, MEMORY, rights);
	return end->memory || end_fail(end, errno, "ibv_reg_mr() of %u bytes", MEMORY);
}

bool end_open(struct end *end, const struct port *port, int xrc_file)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = xrc_file,
		.oflags = O_CREAT,
	};

	*end = (struct end){.port = port, .rnr_timer = RNR_TIMER, .mtu = port->port.active_mtu};
	port_path(port, &end->path);
	end->pd = ibv_alloc_pd(port->verbs);
	if (!end->pd)
		return end_fail(end, errno, "ibv_alloc_pd()");
	end->xrcd = ibv_open_xrcd(port->verbs, &domain);
	if (!end->xrcd)
		return end_fail(end, errno, "ibv_open_xrcd() of a file");
	end->channel = ibv_create_comp_channel(port->verbs);
	if (!end->channel)
		return end_fail(end, errno, "ibv_create_comp_channel()");
	end->sent = ibv_create_cq(port->verbs, END_SLOTS, NULL, end->channel, 0);
	end->received = ibv_create_cq(port->verbs, 2 * END_SLOTS, NULL, NULL, 0);
	if (!end->sent || !end->received)
		return end_fail(end, errno, "ibv_create_cq()");
	end->null_mr = ibv_alloc_null_mr(end->pd); /* not each adapter has one */
	return make_memory(end) && end_make_srq(end);
}

void end_disconnect(struct end *end)
{
	if (end->initiator)
		ibv_destroy_qp(end->initiator);
	if (end->target)
		ibv_destroy_qp(end->target);
	end->initiator = end->target = NULL;
}

void end_close(struct end *end)
{
	end_disconnect(end);
	if (end->srq)
		ibv_destroy_srq(end->srq);
	if (end->memory)
		ibv_dereg_mr(end->memory);
	if (end->null_mr)
		ibv_dereg_mr(end->null_mr);
	if (end->out)
		munmap(end->out, MEMORY);
	if (end->received)
		ibv_destroy_cq(end->received);
	if (end->sent)
		ibv_destroy_cq(end->sent);
	if (end->channel)
		ibv_destroy_comp_channel(end->channel);
	if (end->xrcd)
		ibv_close_xrcd(end->xrcd);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
}

struct ibv_qp *end_make_initiator(struct end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->sent,
		.cap = {.max_send_wr = END_SLOTS,
			.max_send_sge = 1,
			.max_inline_data = INLINE_WANTED},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(end->port->verbs, &attr);

	if (!qp) {
		attr.cap.max_inline_data = 0;
		qp = ibv_create_qp_ex(end->port->verbs, &attr);
	}
	end->max_inline = attr.cap.max_inline_data;
	return qp;
}

static struct ibv_qp *make_target(const struct end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = end->xrcd,
	};

	return ibv_create_qp_ex(end->port->verbs, &attr);
}

int end_to_init(const struct end *end, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)end->port->pkey_index,
		.port_num = end->port->number,
	};

	if (qp->qp_type == IBV_QPT_XRC_RECV) {
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		if (end->port->attr.atomic_cap != IBV_ATOMIC_NONE)
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	}
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int end_to_rtr(const struct end *end, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = end->path,
		.path_mtu = end->mtu,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = end->rnr_timer,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int end_to_rts(const struct end *end, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRY_FOREVER,
		.max_rd_atomic = 1,
	};

	(void)end;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

bool end_make(struct end *end)
{
	end->initiator = end_make_initiator(end);
	if (!end->initiator)
		return end_fail(end, errno, "ibv_create_qp_ex() of an initiator queue pair");
	end->target = make_target(end);
	if (!end->target)
		return end_fail(end, errno, "ibv_create_qp_ex() of a target queue pair");
	return true;
}

bool end_connect_to(struct end *end, uint32_t initiator, uint32_t target)
{
	int error;

	error = end_to_init(end, end->target);
	if (!error)
		error = end_to_init(end, end->initiator);
	if (!error)
		error = end_to_rtr(end, end->target, initiator);
	if (!error)
		error = end_to_rtr(end, end->initiator, target);
	if (!error)
		error = end_to_rts(end, end->initiator);
	return !error || end_fail(end, error, "ibv_modify_qp()");
}

bool end_connect(struct end *end)
{
	return end_make(end) && end_connect_to(end, end->initiator->qp_num, end->target->qp_num);
}

bool end_open_target(struct end *end, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = end->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	end->target = ibv_open_qp(end->port->verbs, &attr);
	return end->target || end_fail(end, errno, "ibv_open_qp() by a second process");
}

struct ibv_srq *end_new_srq(struct end *end, uint32_t depth, uint32_t *srqn)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = depth, .max_sge = end->port->attr.max_srq_sge < 2 ? 1 : 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = end->pd,
		.xrcd = end->xrcd,
		.cq = end->received,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(end->port->verbs, &attr);
	int error;

	if (!srq) {
		end_fail(end, errno, "ibv_create_srq_ex() of an XRC queue");
		return NULL;
	}
	error = ibv_get_srq_num(srq, srqn);
	if (!error)
		return srq;
	ibv_destroy_srq(srq);
	end_fail(end, error, "ibv_get_srq_num()");
	return NULL;
}

bool end_make_srq(struct end *end)
{
	int error;

	if (end->srq) {
		error = ibv_destroy_srq(end->srq);
		end->srq = NULL;
		if (error)
			return end_fail(end, error, "ibv_destroy_srq()");
	}
	end->srq = end_new_srq(end, END_SLOTS, &end->srqn);
	return end->srq != NULL;
}

bool end_receive(struct end *end, unsigned i, uint32_t len, bool whole)
{
	struct ibv_sge sge[2] = {
		{(uintptr_t)(end->in + i * END_SLOT), len, end->memory->lkey},
		{(uintptr_t)end->rest, END_SLOT - len, end->memory->lkey},
	};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = sge, .num_sge = whole ? 2 : 1}, *bad;
	int error;

	if (end->null_mr) {
		sge[1].addr = 0;
		sge[1].lkey = end->null_mr->lkey;
	}
	error = ibv_post_srq_recv(end->srq, &wr, &bad);
	return !error || end_fail(end, error, "ibv_post_srq_recv()");
}

bool end_post(struct end *end, const struct end_work *work)
{
	struct ibv_sge sge = {(uintptr_t)(end->out + work->slot * END_SLOT), work->len,
			      end->memory->lkey};
	struct ibv_send_wr wr = {
		.wr_id = work->slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = work->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = work->srqn,
	};
	struct ibv_send_wr *bad;
	int error;

	if (work->opcode == IBV_WR_SEND && work->len <= end->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	if (work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = work->addr;
		wr.wr.rdma.rkey = work->rkey;
	} else if (work->opcode != IBV_WR_SEND) {
		wr.wr.atomic.remote_addr = work->addr;
		wr.wr.atomic.rkey = work->rkey;
		wr.wr.atomic.compare_add = work->compare;
		wr.wr.atomic.swap = work->value;
	}
	error = ibv_post_send(end->initiator, &wr, &bad);
	return !error || end_fail(end, error, "ibv_post_send()");
}

bool end_poll(struct end *end, struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t deadline = now_ns() + DEADLINE_NS;
	unsigned polls = 0;
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0) {
		if (++polls % POLLS)
			continue;
		if (now_ns() > deadline && polls >= LEAST_POLLS)
			return end_fail(end, 0, "no completion came within ten seconds");
		sched_yield();
	}
	return n == 1 || end_fail(end, errno, "ibv_poll_cq()");
}

bool end_wait_received(struct end *end)
{
	struct ibv_wc wc;

	if (!end_poll(end, end->received, &wc))
		return false;
	return wc.status == IBV_WC_SUCCESS ||
	       end_fail(end, 0, "a receive failed: %s", ibv_wc_status_str(wc.status));
}

bool end_wait_sent(struct end *end, unsigned n)
{
	struct ibv_wc wc;

	while (n--) {
		if (!end_poll(end, end->sent, &wc))
			return false;
		if (wc.status != IBV_WC_SUCCESS)
			return end_fail(end, 0, "a message failed: %s (vendor error 0x%x)",
					ibv_wc_status_str(wc.status), wc.vendor_err);
	}
	return true;
}

bool end_is_waiting(struct end *end)
{
	uint64_t deadline = now_ns() + WAITING_NS;
	struct ibv_wc wc;

	while (now_ns() < deadline) {
		if (ibv_poll_cq(end->sent, 1, &wc))
			return end_fail(end, 0, "a message ended before its receive was posted: %s",
					ibv_wc_status_str(wc.status));
		sched_yield();
	}
	return true;
}

void end_fill(uint8_t *memory, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		memory[i] = (uint8_t)(seed * 37 + i * 7 + (i >> 8) + 1);
}

bool end_has(const uint8_t *memory, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (memory[i] != (uint8_t)(seed * 37 + i * 7 + (i >> 8) + 1))
			return false;
	return true;
}
