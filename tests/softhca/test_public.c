/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_public.c [no-open-qp] - the fields of the public structs, which programs read: the
 * values that libibverbs and mlx5 keep there after creation and after changes. With the argument
 * the adapter has no ibv_open_qp().
 */
#include <fcntl.h>
#include <pthread.h>

#include "xrc.h"

static struct t_dev *dev;
static bool no_open_qp;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Checks that the mutex is free, and that a signal without a waiter does no harm. */
static void usable(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
	t_ok(pthread_mutex_trylock(mutex));
	t_ok(pthread_mutex_unlock(mutex));
	if (cond)
		t_ok(pthread_cond_signal(cond));
}

/* ---- objects without queues ---- */

static void test_context(void **state)
{
	struct ibv_context *verbs = dev->ctx;
	struct ibv_device *device = verbs->device;

	(void)state;
	t_true(verbs->cmd_fd >= 0 && verbs->async_fd >= 0 && verbs->cmd_fd != verbs->async_fd,
	       "no descriptors");
	t_true(fcntl(verbs->cmd_fd, F_GETFD) >= 0 && fcntl(verbs->async_fd, F_GETFD) >= 0,
	       "descriptors that are not open");
	t_true(verbs->num_comp_vectors >= 1, "no completion vectors");
	t_true(verbs->abi_compat == __VERBS_ABI_IS_EXTENDED, "not an extended context");
	usable(&verbs->mutex, NULL);
	t_eq(device->node_type, IBV_NODE_CA);
	t_eq(device->transport_type, IBV_TRANSPORT_IB);
	t_true(!strcmp(device->name, ibv_get_device_name(device)), "names differ");
	t_true(!strncmp(device->dev_name, "uverbs", 6), "dev_name: %s", device->dev_name);
	t_true(*device->dev_path && *device->ibdev_path, "no paths");
}

static void test_pd(void **state)
{
	struct ibv_td_init_attr ta = {0};
	struct ibv_td *td = ibv_alloc_td(dev->ctx, &ta);
	struct ibv_parent_domain_init_attr pa = {.pd = dev->pd, .td = td};
	struct ibv_pd *other = ibv_alloc_pd(dev->ctx), *domain;

	(void)state;
	t_true(td && other, "set-up: %s", strerror(errno));
	t_true(td->context == dev->ctx, "td->context");
	t_true(other->context == dev->ctx, "pd->context");
	t_true(other->handle != dev->pd->handle, "two PDs with one handle");
	domain = ibv_alloc_parent_domain(dev->ctx, &pa);
	t_true(domain, "ibv_alloc_parent_domain: %s", strerror(errno));
	t_true(domain->context == dev->ctx, "context of a parent domain");
	t_eq(domain->handle, dev->pd->handle);
	t_ok(ibv_dealloc_pd(domain));
	t_ok(ibv_dealloc_td(td));
	t_ok(ibv_dealloc_pd(other));
}

static void test_mr(void **state)
{
	static char memory[2][8192] __attribute__((aligned(4096)));
	struct ibv_pd *other = ibv_alloc_pd(dev->ctx);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, memory[0] + 8, 100, IBV_ACCESS_LOCAL_WRITE);

	(void)state;
	t_true(mr && other, "set-up: %s", strerror(errno));
	t_true(mr->context == dev->ctx && mr->pd == dev->pd, "context, pd");
	t_true(mr->addr == memory[0] + 8 && mr->length == 100, "addr, length");
	t_true(mr->lkey && mr->rkey, "keys of 0");
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, other,
			  memory[1], 8192, 0));
	t_true(mr->context == dev->ctx && mr->pd == other, "context, pd after ibv_rereg_mr");
	t_true(mr->addr == memory[1] && mr->length == 8192, "addr, length after ibv_rereg_mr");
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_dealloc_pd(other));

	mr = ibv_alloc_null_mr(dev->pd);
	t_true(mr, "ibv_alloc_null_mr: %s", strerror(errno));
	t_true(mr->context == dev->ctx && mr->pd == dev->pd, "context, pd of a null MR");
	t_true(!mr->addr && mr->length == SIZE_MAX, "addr, length of a null MR");
	/* The null MR is for local use, and no object of the kernel's. */
	t_true(mr->lkey && !mr->rkey && !mr->handle, "keys, handle of a null MR");
	t_ok(ibv_dereg_mr(mr));
}

static void test_ah(void **state)
{
	struct t_spec spec = {.type = IBV_QPT_UD};
	struct t_qp *qp = t_qp(dev, &spec);
	struct t_addr a = t_addr(qp);
	struct ibv_ah *ah = t_ah(dev, &a, true);

	(void)state;
	t_true(ah->context == dev->ctx && ah->pd == dev->pd, "context, pd");
	t_ok(ibv_destroy_ah(ah));
	t_qp_free(qp);
}

/* ---- queues ---- */

static void check_cq(struct ibv_cq *cq, struct ibv_comp_channel *ch, void *user)
{
	t_true(cq->context == dev->ctx && cq->channel == ch && cq->cq_context == user,
	       "context, channel, cq_context");
	t_eq(cq->comp_events_completed, 0);
	t_eq(cq->async_events_completed, 0);
	usable(&cq->mutex, &cq->cond);
}

/* Checks that a CQ's capacity is a power of two less one, also after a change, and that the channel
 * counts its CQs. */
static void test_cq(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq_init_attr_ex ex = {.cqe = 20, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq *a, *b;
	struct ibv_cq_ex *cq;
	int user;

	(void)state;
	t_true(ch, "ibv_create_comp_channel: %s", strerror(errno));
	t_true(ch->context == dev->ctx && ch->fd >= 0, "context, fd of a channel");
	t_eq(ch->refcnt, 0);
	a = ibv_create_cq(dev->ctx, 100, &user, ch, 0);
	b = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	ex.channel = ch;
	ex.cq_context = &ex;
	cq = ibv_create_cq_ex(dev->ctx, &ex);
	t_true(a && b && cq, "set-up: %s", strerror(errno));
	check_cq(a, ch, &user);
	check_cq(b, NULL, NULL);
	check_cq(ibv_cq_ex_to_cq(cq), ch, &ex);
	t_eq(cq->comp_mask, 0);
	t_eq(a->cqe, 127);
	t_eq(b->cqe, 1);
	t_eq(cq->cqe, 31);
	t_eq(ch->refcnt, 2);
	t_ok(ibv_resize_cq(a, 200));
	t_eq(a->cqe, 255);
	t_ok(ibv_resize_cq(a, 3));
	t_eq(a->cqe, 3);
	check_cq(a, ch, &user);
	t_ok(ibv_destroy_cq(a));
	t_eq(ch->refcnt, 1);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	t_eq(ch->refcnt, 0);
	t_ok(ibv_destroy_cq(b));
	t_ok(ibv_destroy_comp_channel(ch));
}

static void check_srq(struct ibv_srq *srq, void *user)
{
	t_true(srq->context == dev->ctx && srq->srq_context == user && srq->pd == dev->pd,
	       "context, srq_context, pd");
	t_eq(srq->events_completed, 0);
	usable(&srq->mutex, &srq->cond);
}

static void test_srq(void **state)
{
	struct ibv_srq_init_attr a = {.srq_context = &a, .attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &a), *xsrq;
	struct ibv_xrcd *xrcd = x_open(dev, -1, O_CREAT);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);

	(void)state;
	t_true(srq && cq, "set-up: %s", strerror(errno));
	check_srq(srq, &a);
	t_true(xrcd->context == dev->ctx, "context of an XRC domain");
	xsrq = x_srq(dev, NULL, xrcd, cq);
	check_srq(xsrq, NULL);
	t_ok(ibv_destroy_srq(xsrq));
	t_ok(ibv_destroy_srq(srq));
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_close_xrcd(xrcd));
}

static void check_qp(struct ibv_qp *qp, enum ibv_qp_type type, void *user)
{
	t_true(qp->context == dev->ctx && qp->qp_context == user, "context, qp_context");
	t_eq(qp->qp_type, type);
	t_true(qp->qp_num > 1 && qp->qp_num < 1u << 24, "QPN %u", qp->qp_num);
	t_eq(qp->events_completed, 0);
	usable(&qp->mutex, &qp->cond);
}

static void has(const struct ibv_qp *qp, struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq,
		struct ibv_srq *srq)
{
	t_true(qp->pd == pd && qp->send_cq == scq && qp->recv_cq == rcq && qp->srq == srq,
	       "pd, send_cq, recv_cq, srq");
}

static void test_qp(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &sa);
	struct ibv_xrcd *xrcd = x_open(dev, -1, O_CREAT);
	struct ibv_qp_init_attr a = {.qp_context = &a,
				     .send_cq = cq,
				     .recv_cq = cq,
				     .srq = srq,
				     .cap = {.max_send_wr = 1, .max_send_sge = 1},
				     .qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr_ex ini = {.send_cq = cq,
					  .recv_cq = cq,
					  .cap = a.cap,
					  .qp_type = IBV_QPT_XRC_SEND,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = dev->pd};
	struct ibv_qp_init_attr_ex tgt = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp *qp;

	(void)state;
	t_true(cq && srq, "set-up: %s", strerror(errno));
	qp = ibv_create_qp(dev->pd, &a);
	t_true(qp, "RC: %s", strerror(errno));
	check_qp(qp, IBV_QPT_RC, &a);
	has(qp, dev->pd, cq, cq, srq);
	t_eq(qp->state, IBV_QPS_RESET);
	t_ok(ibv_destroy_qp(qp));
	/* An initiator ignores the receive queue that its creator names. */
	qp = ibv_create_qp_ex(dev->ctx, &ini);
	t_true(qp, "XRC initiator: %s", strerror(errno));
	check_qp(qp, IBV_QPT_XRC_SEND, NULL);
	has(qp, dev->pd, cq, cq, NULL);
	t_ok(ibv_destroy_qp(qp));
	qp = ibv_create_qp_ex(dev->ctx, &tgt);
	t_true(qp, "XRC target: %s", strerror(errno));
	check_qp(qp, IBV_QPT_XRC_RECV, NULL);
	has(qp, NULL, NULL, NULL, NULL);
	t_eq(qp->state, IBV_QPS_RESET);
	t_ok(ibv_destroy_qp(qp));
	t_ok(ibv_destroy_srq(srq));
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_close_xrcd(xrcd));
}

/* Checks that ibv_modify_qp() and ibv_query_qp() update the state if their mask has it, and that
 * nothing else does. */
static void test_qp_state(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_params p = t_params(dev);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct t_addr to = t_addr(qp);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge bad = t_sge(&b, 0, 8);

	(void)state;
	t_to_init(qp, &p);
	t_eq(qp->qp->state, IBV_QPS_INIT);
	t_to_rtr(qp, &p, &to);
	t_eq(qp->qp->state, IBV_QPS_RTR);
	t_to_rts(qp, &p);
	t_eq(qp->qp->state, IBV_QPS_RTS);
	a = (struct ibv_qp_attr){.min_rnr_timer = 3};
	t_ok(ibv_modify_qp(qp->qp, &a, IBV_QP_MIN_RNR_TIMER));
	t_eq(qp->qp->state, IBV_QPS_RTS);
	/* The adapter takes the QP to ERR by itself. */
	bad.lkey ^= 0x200;
	t_send(qp, 1, bad);
	t_next(qp->scq, 1, IBV_WC_LOC_PROT_ERR);
	t_ok(ibv_query_qp(qp->qp, &a, IBV_QP_QKEY, &init));
	t_eq(a.qp_state, IBV_QPS_ERR);
	t_eq(qp->qp->state, IBV_QPS_RTS);
	t_ok(ibv_query_qp(qp->qp, &a, IBV_QP_STATE, &init));
	t_eq(qp->qp->state, IBV_QPS_ERR);
	t_ok(t_to_state(qp, IBV_QPS_RESET));
	t_eq(qp->qp->state, IBV_QPS_RESET);
	t_qp_free(qp);
	t_buf_free(&b);
}

/* Checks values that mlx5 reports though nobody set them: no READs are granted without resources
 * for them, 0 READs are 1, and a UD QP has the largest MTU. */
static void test_query_qp(void **state)
{
	struct t_params p = t_params(dev);
	struct t_spec ud = {.type = IBV_QPT_UD}, rc = {.sq_sig_all = 2};
	struct t_qp *qp = t_qp(dev, &rc), *datagrams = t_qp(dev, &ud);
	struct t_addr self = t_addr(qp);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	(void)state;
	p.max_rd_atomic = 0;
	t_to_init(qp, &p);
	t_ok(ibv_query_qp(qp->qp, &a, IBV_QP_ACCESS_FLAGS, &init));
	t_eq(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	t_eq(a.max_dest_rd_atomic, 1);
	t_eq(init.sq_sig_all, 1);
	t_to_rtr(qp, &p, &self);
	t_to_rts(qp, &p);
	t_ok(ibv_query_qp(qp->qp, &a, IBV_QP_ACCESS_FLAGS, &init));
	t_eq(a.qp_access_flags,
	     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	t_eq(a.max_rd_atomic, 1);
	t_rc(ibv_query_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_RATE_LIMIT, &init), EOPNOTSUPP);
	t_to_init(datagrams, NULL);
	t_ok(ibv_query_qp(datagrams->qp, &a, IBV_QP_PATH_MTU, &init));
	t_eq(a.path_mtu, IBV_MTU_4096);
	t_qp_free(datagrams);
	t_qp_free(qp);
}

/* Checks that an opened target QP has only its number, and an unknown state. */
static void test_opened(void **state)
{
	struct ibv_xrcd *xrcd = x_open(dev, -1, O_CREAT);
	struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = xrcd};
	struct t_qp *q = t_qp(dev, &spec);
	struct ibv_qp_open_attr oa = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						   IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
				      .qp_num = q->qp->qp_num,
				      .xrcd = xrcd,
				      .qp_context = &oa,
				      .qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct ibv_qp *qp;

	(void)state;
	t_to_init(q, NULL);
	if (no_open_qp) {
		t_null(ibv_open_qp(dev->ctx, &oa), EOPNOTSUPP);
		t_qp_free(q);
		t_ok(ibv_close_xrcd(xrcd));
		return;
	}
	qp = ibv_open_qp(dev->ctx, &oa);
	t_true(qp, "ibv_open_qp: %s", strerror(errno));
	check_qp(qp, IBV_QPT_XRC_RECV, &oa);
	has(qp, NULL, NULL, NULL, NULL);
	t_eq(qp->qp_num, q->qp->qp_num);
	t_eq(qp->state, IBV_QPS_UNKNOWN);
	t_ok(ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
	t_eq(qp->state, IBV_QPS_INIT);
	/* A change by one handle doesn't show in the other's struct. */
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR};
	t_ok(ibv_modify_qp(qp, &a, IBV_QP_STATE));
	t_eq(qp->state, IBV_QPS_ERR);
	t_eq(q->qp->state, IBV_QPS_INIT);
	t_ok(ibv_destroy_qp(qp));
	t_qp_free(q);
	t_ok(ibv_close_xrcd(xrcd));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context),  cmocka_unit_test(test_pd),
		cmocka_unit_test(test_mr),       cmocka_unit_test(test_ah),
		cmocka_unit_test(test_cq),       cmocka_unit_test(test_srq),
		cmocka_unit_test(test_qp),       cmocka_unit_test(test_qp_state),
		cmocka_unit_test(test_query_qp), cmocka_unit_test(test_opened),
	};

	no_open_qp = argc > 1 && !strcmp(argv[1], "no-open-qp");
	return cmocka_run_group_tests(tests, setup, t_teardown);
}
