/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.c - see work.h.
 */
#include "work.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include "check.h"

struct ibv_send_wr t_wr(enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	return (struct ibv_send_wr){.wr_id = wr_id,
				    .sg_list = sge,
				    .num_sge = n,
				    .opcode = op,
				    .send_flags = IBV_SEND_SIGNALED};
}

struct ibv_send_wr t_rdma(enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int n,
			  uint64_t raddr, uint32_t rkey)
{
	struct ibv_send_wr wr = t_wr(op, wr_id, sge, n);

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

int t_post_try(struct t_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp->qp, wr, &bad);
}

void t_post(struct t_qp *qp, struct ibv_send_wr *wr)
{
	t_ok(t_post_try(qp, wr));
}

void t_send(struct t_qp *qp, uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, wr_id, &sge, 1);

	t_post(qp, &wr);
}

int t_recv_try(struct t_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = n}, *bad;

	return ibv_post_recv(qp->qp, &wr, &bad);
}

void t_recv(struct t_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	t_ok(t_recv_try(qp, wr_id, sge, n));
}

int t_srq_recv_try(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = n}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

void t_srq_recv(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int n)
{
	t_ok(t_srq_recv_try(srq, wr_id, sge, n));
}

void t_poll(struct ibv_cq *cq, struct ibv_wc *wc, int n)
{
	uint64_t t0 = t_now();
	int got = 0;

	while (got < n) {
		int k = ibv_poll_cq(cq, n - got, wc + got);

		t_true(k >= 0, "ibv_poll_cq returned %d", k);
		got += k;
		if (k)
			continue;
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "only %d of %d completions came", got, n);
		sched_yield();
	}
}

struct ibv_wc t_next_at(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			const char *file, int line)
{
	uint64_t t0 = t_now();
	struct ibv_wc wc;
	int k;

	while ((k = ibv_poll_cq(cq, 1, &wc)) == 0) {
		if (t_ms_since(t0) >= T_DEADLINE_MS)
			t_fail_at(file, line, "no completion; wr_id %llu with %s was to come",
				  (unsigned long long)wr_id, ibv_wc_status_str(status));
		sched_yield();
	}
	if (k != 1)
		t_fail_at(file, line, "ibv_poll_cq returned %d", k);
	if (wc.wr_id != wr_id || wc.status != status)
		t_fail_at(file, line, "completion is wr_id %llu, %s (vendor 0x%x); not %llu, %s",
			  (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err,
			  (unsigned long long)wr_id, ibv_wc_status_str(status));
	return wc;
}

void t_none(struct ibv_cq *cq, int ms)
{
	uint64_t t0 = t_now();

	do {
		t_empty(cq);
		sched_yield();
	} while (t_ms_since(t0) < ms);
}

void t_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int k = ibv_poll_cq(cq, 1, &wc);

	t_true(k == 0, "unexpected completion (%d): wr_id %llu, %s", k,
	       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

bool t_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

struct ibv_async_event t_event(struct ibv_context *ctx)
{
	struct ibv_async_event ev;

	t_true(t_readable(ctx->async_fd, T_DEADLINE_MS), "no asynchronous event came");
	t_true(ibv_get_async_event(ctx, &ev) == 0, "ibv_get_async_event: %s", strerror(errno));
	ibv_ack_async_event(&ev);
	return ev;
}

enum ibv_event_type t_qp_event(struct t_qp *qp, unsigned mask)
{
	for (;;) {
		struct ibv_async_event ev = t_event(qp->dev->ctx);

		if (ev.element.qp != qp->qp || ev.event_type == IBV_EVENT_COMM_EST)
			continue;
		t_true(mask & (1u << ev.event_type), "event is %s",
		       ibv_event_type_str(ev.event_type));
		return ev.event_type;
	}
}

void t_drain_events(struct ibv_context *ctx)
{
	int flags = fcntl(ctx->async_fd, F_GETFL);
	struct ibv_async_event ev;

	/* An event whose object is gone may be dropped in the call, which must then not wait for
	 * the next one. */
	fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
	while (!ibv_get_async_event(ctx, &ev))
		ibv_ack_async_event(&ev);
	fcntl(ctx->async_fd, F_SETFL, flags);
}
