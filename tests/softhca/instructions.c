/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instructions.c - windows of short messages between two queue pairs of one process, for
 * test_instructions.sh, which counts the instructions of the four functions that begin with
 * "window_".
 *
 * Arguments: rc, srq or xrc; copied or inline; one, or list for a post of all of a window at once.
 */
#include <fcntl.h>

#include "util.h"
#include "xrc.h"

enum { WINDOW = 64, WINDOWS = 20, LEN = 8 };

struct traffic {
	struct ibv_qp *from, *to;
	struct ibv_srq *srq; /* NULL: the receives are the QP's own */
	struct ibv_cq *sends, *receives;
	bool as_list;
	struct ibv_send_wr send[WINDOW];
	struct ibv_recv_wr receive[WINDOW];
	struct ibv_sge out, in;
};

__attribute__((noinline)) void window_posts_receives(struct traffic *traffic);
__attribute__((noinline)) void window_posts_sends(struct traffic *traffic);
__attribute__((noinline)) void window_polls_sends(struct traffic *traffic);
__attribute__((noinline)) void window_polls_receives(struct traffic *traffic);

void window_posts_receives(struct traffic *traffic)
{
	struct ibv_recv_wr *bad;

	for (unsigned i = 0; i < (traffic->as_list ? 1 : WINDOW); i++) {
		if (traffic->srq)
			t_ok(ibv_post_srq_recv(traffic->srq, &traffic->receive[i], &bad));
		else
			t_ok(ibv_post_recv(traffic->to, &traffic->receive[i], &bad));
	}
}

void window_posts_sends(struct traffic *traffic)
{
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < (traffic->as_list ? 1 : WINDOW); i++)
		t_ok(ibv_post_send(traffic->from, &traffic->send[i], &bad));
}

/* Takes the completions of a window, 16 at a time. */
static void poll(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];

	for (int got = 0; got < WINDOW; got += 16)
		t_eq(ibv_poll_cq(cq, 16, wc), 16);
}

void window_polls_sends(struct traffic *traffic)
{
	poll(traffic->sends);
}

void window_polls_receives(struct traffic *traffic)
{
	poll(traffic->receives);
}

static void prepare(struct traffic *traffic, unsigned flags, uint32_t srqn)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		bool last = i == WINDOW - 1 || !traffic->as_list;

		traffic->send[i] = t_wr(IBV_WR_SEND, i, &traffic->out, 1);
		traffic->send[i].send_flags |= flags;
		traffic->send[i].qp_type.xrc.remote_srqn = srqn;
		traffic->send[i].next = last ? NULL : &traffic->send[i + 1];
		traffic->receive[i] = (struct ibv_recv_wr){
			.wr_id = i,
			.sg_list = &traffic->in,
			.num_sge = 1,
			.next = last ? NULL : &traffic->receive[i + 1],
		};
	}
}

static struct ibv_srq *make_srq(struct t_dev *dev, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = WINDOW, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = xrcd ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = dev->pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	if (xrcd)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return ibv_create_srq_ex(dev->ctx, &attr);
}

int main(int argc, char **argv)
{
	bool xrc = argc == 4 && !strcmp(argv[1], "xrc"), srq = argc == 4 && !strcmp(argv[1], "srq");
	struct t_dev *dev = t_open();
	struct t_buf buf = t_buf(dev, 4096);
	struct ibv_xrcd *xrcd = xrc ? x_open(dev, -1, O_CREAT) : NULL;
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, WINDOW, NULL, NULL, 0);
	struct traffic traffic = {
		.srq = xrc || srq ? make_srq(dev, xrcd, cq) : NULL,
		.receives = cq,
		.as_list = argc == 4 && !strcmp(argv[3], "list"),
		.out = t_sge(&buf, 0, LEN),
		.in = t_sge(&buf, 2048, LEN),
	};
	struct t_spec from = {.type = xrc ? IBV_QPT_XRC_SEND : IBV_QPT_RC,
			      .cap = {WINDOW, 1, 1, 1, LEN}};
	struct t_spec to = {.type = xrc ? IBV_QPT_XRC_RECV : IBV_QPT_RC,
			    .cap = {1, WINDOW, 1, 1, 0},
			    .rcq = cq,
			    .srq = srq ? traffic.srq : NULL,
			    .xrcd = xrcd};
	struct t_qp *a, *b;

	t_true(argc == 4, "arguments: rc|srq|xrc copied|inline one|list");
	a = t_qp(dev, &from);
	b = t_qp(dev, &to);
	t_connect(a, b, NULL);
	traffic.from = a->qp;
	traffic.to = b->qp;
	traffic.sends = a->scq;
	prepare(&traffic, strcmp(argv[2], "inline") ? 0 : IBV_SEND_INLINE,
		xrc ? x_num(traffic.srq) : 0);
	for (unsigned i = 0; i < WINDOWS; i++) {
		window_posts_receives(&traffic);
		t_fill(buf.addr, LEN, i);
		window_posts_sends(&traffic);
		window_polls_sends(&traffic);
		window_polls_receives(&traffic);
		t_check(buf.addr + 2048, LEN, i);
	}
	printf("messages %d\n", WINDOWS * WINDOW);
	t_qp_free(a);
	t_qp_free(b);
	if (traffic.srq)
		t_ok(ibv_destroy_srq(traffic.srq));
	t_ok(ibv_destroy_cq(cq));
	if (xrcd)
		t_ok(ibv_close_xrcd(xrcd));
	t_buf_free(&buf);
	t_close(dev);
	return 0;
}
