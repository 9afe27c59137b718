/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrc.c - see xrc.h.
 */
#define _GNU_SOURCE 1
#include "xrc.h"

#include <fcntl.h>
#include <unistd.h>

int x_file(char *path)
{
	int fd;

	strcpy(path, "/tmp/softhca-xrcd-XXXXXX");
	fd = mkstemp(path);
	t_true(fd >= 0, "mkstemp: %s", strerror(errno));
	return fd;
}

struct ibv_xrcd *x_open_try(struct t_dev *dev, int fd, int oflags)
{
	struct ibv_xrcd_init_attr a = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(dev->ctx, &a);
}

struct ibv_xrcd *x_open(struct t_dev *dev, int fd, int oflags)
{
	struct ibv_xrcd *xrcd = x_open_try(dev, fd, oflags);

	t_true(xrcd, "ibv_open_xrcd: %s", strerror(errno));
	return xrcd;
}

struct ibv_srq *x_srq_try(struct t_dev *dev, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
			  struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex a = {
		.attr = {.max_wr = 32, .max_sge = 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd ? pd : dev->pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(dev->ctx, &a);
}

struct ibv_srq *x_srq(struct t_dev *dev, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
		      struct ibv_cq *cq)
{
	struct ibv_srq *srq = x_srq_try(dev, pd, xrcd, cq);

	t_true(srq, "ibv_create_srq_ex: %s", strerror(errno));
	return srq;
}

uint32_t x_num(struct ibv_srq *srq)
{
	uint32_t n = 0;

	t_ok(ibv_get_srq_num(srq, &n));
	return n;
}

void x_post(struct t_qp *ini, struct ibv_send_wr *wr, uint32_t srqn)
{
	wr->qp_type.xrc.remote_srqn = srqn;
	t_post(ini, wr);
}

void x_send(struct t_qp *ini, uint64_t wr_id, struct ibv_sge sge, uint32_t srqn)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, wr_id, &sge, 1);

	x_post(ini, &wr, srqn);
}

struct ibv_qp *x_open_qp(struct t_dev *dev, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr a = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(dev->ctx, &a);
}

struct x_set x_set(struct t_dev *dev, const struct t_params *params)
{
	struct x_set x = {.dev = dev};
	struct t_spec ini = {.type = IBV_QPT_XRC_SEND}, tgt = {.type = IBV_QPT_XRC_RECV};

	x.xrcd = x_open(dev, -1, O_CREAT);
	x.cq = ibv_create_cq(dev->ctx, 64, NULL, NULL, 0);
	t_true(x.cq, "ibv_create_cq: %s", strerror(errno));
	x.srq = x_srq(dev, NULL, x.xrcd, x.cq);
	x.srqn = x_num(x.srq);
	tgt.xrcd = x.xrcd;
	x.ini = t_qp(dev, &ini);
	x.tgt = t_qp(dev, &tgt);
	t_connect(x.ini, x.tgt, params);
	x.b = t_buf(dev, 1u << 20);
	return x;
}

void x_set_free(struct x_set *set)
{
	t_qp_free(set->ini);
	t_qp_free(set->tgt);
	t_ok(ibv_destroy_srq(set->srq));
	t_ok(ibv_destroy_cq(set->cq));
	t_ok(ibv_close_xrcd(set->xrcd));
	t_buf_free(&set->b);
}

struct x_receiver x_receiver(const char *path)
{
	struct x_receiver r = {.dev = t_open()};
	int fd = open(path, O_RDWR);

	t_true(fd >= 0, "open %s: %s", path, strerror(errno));
	r.xrcd = x_open(r.dev, fd, O_CREAT);
	close(fd); /* the domain doesn't need the file any more */
	r.cq = ibv_create_cq(r.dev->ctx, 64, NULL, NULL, 0);
	r.srq = x_srq(r.dev, NULL, r.xrcd, r.cq);
	r.b = t_buf(r.dev, X_LEN);
	r.all = t_sge(&r.b, 0, X_LEN);
	procs_put_buf(X_K_BUF, &r.b);
	procs_put(X_K_SRQ, x_num(r.srq));
	return r;
}

void x_receiver_free(struct x_receiver *receiver)
{
	t_ok(ibv_destroy_srq(receiver->srq));
	t_ok(ibv_destroy_cq(receiver->cq));
	t_ok(ibv_close_xrcd(receiver->xrcd));
	t_buf_free(&receiver->b);
	t_close(receiver->dev);
}

struct t_qp *x_target(struct x_receiver *receiver)
{
	struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = receiver->xrcd};
	struct t_qp *qp = t_qp(receiver->dev, &spec);
	struct t_addr peer;

	procs_put_addr(X_K_TGT, qp);
	peer = procs_get_addr(0, X_K_INI);
	t_up(qp, NULL, &peer);
	return qp;
}

void x_take(struct x_receiver *receiver, unsigned seed, size_t len)
{
	struct ibv_wc wc = t_next(receiver->cq, seed, IBV_WC_SUCCESS);

	t_eq(wc.byte_len, len);
	t_check(receiver->b.addr, len, seed);
}

struct x_sender x_sender(unsigned tgt)
{
	struct t_spec spec = {.type = IBV_QPT_XRC_SEND};
	struct x_sender s = {.dev = t_open()};
	struct t_addr peer;

	s.q = t_qp(s.dev, &spec);
	s.b = t_buf(s.dev, X_LEN);
	procs_put_addr(X_K_INI, s.q);
	peer = procs_get_addr(tgt, X_K_TGT);
	t_up(s.q, NULL, &peer);
	return s;
}

void x_sender_free(struct x_sender *sender)
{
	t_qp_free(sender->q);
	t_buf_free(&sender->b);
	t_close(sender->dev);
}

void x_send_to(struct x_sender *sender, unsigned who, unsigned seed, size_t len,
	       enum ibv_wc_status want)
{
	t_fill(sender->b.addr, len, seed);
	x_send(sender->q, seed, t_sge(&sender->b, 0, len), (uint32_t)procs_get(who, X_K_SRQ));
	t_next(sender->q->scq, seed, want);
}
