/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_qp_states.c - the state machine of every QP type: the attributes that each transition needs
 * and allows (IBA 11.2.5.2), the results of queries, and the effects of ERR, RESET, SQD and SQE on
 * posted work.
 */
#include <fcntl.h>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

#define CONN    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define DEST_RD (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define PATH    (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS)
#define RETRY   (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define MIG     (IBV_QP_CUR_STATE | PATH | IBV_QP_PATH_MIG_STATE)
#define ALL_BITS                                                                                  \
	(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV |        \
	 IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |                         \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN | IBV_QP_CAP)

/* The three steps to RTS: their required and optional attributes. */
static const struct {
	enum ibv_qp_type type;
	int req[3], opt[3];
} types[] = {
	{IBV_QPT_RC,
	 {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, CONN | DEST_RD,
	  RETRY | IBV_QP_SQ_PSN},
	 {0, PATH | IBV_QP_PKEY_INDEX, MIG | IBV_QP_MIN_RNR_TIMER}},
	{IBV_QPT_UC,
	 {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, CONN, IBV_QP_SQ_PSN},
	 {0, PATH | IBV_QP_PKEY_INDEX, MIG}},
	{IBV_QPT_UD,
	 {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN},
	 {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPT_XRC_SEND,
	 {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, CONN, RETRY | IBV_QP_SQ_PSN},
	 {0, PATH | IBV_QP_PKEY_INDEX, MIG}},
	{IBV_QPT_XRC_RECV,
	 {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, CONN | DEST_RD,
	  IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
	 {0, PATH | IBV_QP_PKEY_INDEX, MIG | IBV_QP_MIN_RNR_TIMER}},
};
#define NTYPES (sizeof(types) / sizeof(types[0]))

static const enum ibv_qp_state path_states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						IBV_QPS_RTS};

static bool offered(enum ibv_qp_type type)
{
	return (type != IBV_QPT_XRC_SEND && type != IBV_QPT_XRC_RECV) ||
	       (dev->attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC);
}

/* Creates a QP of the type. XRC_RECV gets a private domain, which is left in *xrcd. */
static struct t_qp *make(enum ibv_qp_type type, struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr a = {.comp_mask =
					       IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
				       .fd = -1,
				       .oflags = O_CREAT};
	struct t_spec s = {.type = type};

	*xrcd = NULL;
	if (type == IBV_QPT_XRC_RECV) {
		*xrcd = ibv_open_xrcd(dev->ctx, &a);
		t_true(*xrcd, "ibv_open_xrcd: %s", strerror(errno));
		s.xrcd = *xrcd;
	}
	return t_qp(dev, &s);
}

static void unmake(struct t_qp *qp, struct ibv_xrcd *xrcd)
{
	t_qp_free(qp);
	if (xrcd)
		t_ok(ibv_close_xrcd(xrcd));
}

/* Fills in the attributes (all of them sensible) of step 0, 1 or 2, and returns the required
 * mask. */
static int step_attr(struct t_qp *qp, int step, struct ibv_qp_attr *attr)
{
	struct t_params p = t_params(dev);
	struct t_addr self = t_addr(qp);
	struct ibv_qp_attr rts, init;
	int mask[3];

	mask[0] = t_attr_init(qp->type, &p, &init);
	mask[2] = t_attr_rts(qp->type, &p, &rts);
	mask[1] = t_attr_rtr(qp->type, &p, &self, attr);
	if (qp->type == IBV_QPT_UD)
		t_attr_rtr(IBV_QPT_RC, &p, &self, attr);
	attr->pkey_index = 0;
	attr->port_num = 1;
	attr->qkey = T_QKEY;
	attr->qp_access_flags = init.qp_access_flags;
	attr->sq_psn = rts.sq_psn;
	attr->timeout = p.timeout;
	attr->retry_cnt = attr->rnr_retry = 7;
	attr->max_rd_atomic = attr->max_dest_rd_atomic = 1;
	attr->min_rnr_timer = 12;
	attr->cur_qp_state = path_states[step];
	attr->qp_state = path_states[step + 1];
	return mask[step];
}

/* Returns the attributes that the kernel removes from the mask of half an XRC connection, so that
 * both halves may be set up alike. */
static int other_half(enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND)
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (type == IBV_QPT_XRC_RECV)
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	return 0;
}

/* Tries each step without one of its attributes, then with a foreign one, then correctly. */
static void test_masks(void **state)
{
	(void)state;
	for (size_t t = 0; t < NTYPES; t++) {
		struct ibv_xrcd *xrcd;
		struct t_qp *qp;

		if (!offered(types[t].type))
			continue;
		qp = make(types[t].type, &xrcd);
		for (int step = 0; step < 3; step++) {
			struct ibv_qp_attr attr;
			int mask = step_attr(qp, step, &attr), req = types[t].req[step];
			int allowed = req | types[t].opt[step] | other_half(qp->type);

			t_eq(mask, req | IBV_QP_STATE);
			for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
				int m = (req & bit) ? mask & ~bit : mask | bit;

				if (!(req & bit) && (allowed & bit || !(bit & ALL_BITS)))
					continue;
				t_true(ibv_modify_qp(qp->qp, &attr, m) == EINVAL,
				       "type %d, step %d, bit 0x%x was not refused", qp->type, step,
				       bit);
				t_eq(t_state(qp), path_states[step]);
			}
			mask |= types[t].opt[step] & ~(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
			t_ok(ibv_modify_qp(qp->qp, &attr, mask));
			t_eq(t_state(qp), path_states[step + 1]);
			t_eq(qp->qp->state, path_states[step + 1]);
		}
		unmake(qp, xrcd);
	}
}

/* Tries every state to every state; `allowed` has one bit per target. RTR and RTS get all their
 * attributes. */
static void test_transitions(void **state)
{
	static const unsigned any = 1u << IBV_QPS_RESET | 1u << IBV_QPS_ERR;
	static const unsigned allowed[] = {
		[IBV_QPS_RESET] = 1u << IBV_QPS_INIT,
		[IBV_QPS_INIT] = any | 1u << IBV_QPS_INIT | 1u << IBV_QPS_RTR,
		[IBV_QPS_RTR] = any | 1u << IBV_QPS_RTS,
		[IBV_QPS_RTS] = any | 1u << IBV_QPS_RTS | 1u << IBV_QPS_SQD,
		[IBV_QPS_SQD] = any | 1u << IBV_QPS_RTS | 1u << IBV_QPS_SQD,
		[IBV_QPS_ERR] = any,
	};

	(void)state;
	for (size_t t = 0; t < 3; t++)
		for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
				struct ibv_xrcd *xrcd;
				struct t_qp *qp;
				struct ibv_qp_attr attr;
				int mask = IBV_QP_STATE, rc;

				if (from == IBV_QPS_SQE)
					continue;
				/* RESET to RESET: nothing to do, and adapters differ. */
				if (from == IBV_QPS_RESET && to == IBV_QPS_RESET)
					continue;
				qp = make(types[t].type, &xrcd);
				for (int s = 0; s < 3 && from != IBV_QPS_RESET; s++) {
					if (from < (int)path_states[s + 1] && from <= IBV_QPS_RTS)
						break;
					mask = step_attr(qp, s, &attr);
					t_ok(ibv_modify_qp(qp->qp, &attr, mask));
				}
				if (from > IBV_QPS_RTS)
					t_ok(t_to_state(qp, (enum ibv_qp_state)from));
				memset(&attr, 0, sizeof(attr));
				mask = IBV_QP_STATE;
				if (to >= IBV_QPS_INIT && to <= IBV_QPS_RTS && from == to - 1)
					mask = step_attr(qp, to - 1, &attr);
				attr.qp_state = (enum ibv_qp_state)to;
				rc = ibv_modify_qp(qp->qp, &attr, mask);
				t_true(rc == ((allowed[from] & 1u << to) ? 0 : EINVAL),
				       "type %d, state %d to %d: returned %d", qp->type, from, to,
				       rc);
				t_eq(t_state(qp), rc ? from : to);
				unmake(qp, xrcd);
			}
}

/* Checks that a step which ends a QP's work allows no attribute but the state, not even the current
 * state. */
static void test_end_masks(void **state)
{
	static const enum ibv_qp_state ends[] = {IBV_QPS_RESET, IBV_QPS_ERR};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct t_pair p = t_pair(dev, NULL, NULL, 4096);
		struct ibv_qp_attr attr = {.qp_state = ends[i], .cur_qp_state = IBV_QPS_RTS};

		t_rc(ibv_modify_qp(p.a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
		t_eq(t_state(p.a), IBV_QPS_RTS);
		t_ok(ibv_modify_qp(p.a->qp, &attr, IBV_QP_STATE));
		t_pair_free(&p);
	}
}

/* Checks that a program that asks for no requests and no receives gets none. */
static void test_no_work(void **state)
{
	struct t_pair p;
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;
	struct ibv_send_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_qp *was;

	(void)state;
	p = t_pair(dev, NULL, NULL, 4096);
	was = p.a->qp;
	p.a->qp = ibv_create_qp(dev->pd, &init);
	t_true(p.a->qp != NULL, "no QP: %d", errno);
	t_eq(init.cap.max_send_wr, 0);
	t_eq(init.cap.max_recv_wr, 0);
	t_to_init(p.a, NULL);
	t_rc(ibv_post_recv(p.a->qp, &recv, &bad), ENOMEM);
	t_true(bad == &recv, "bad is another one");
	t_ok(t_to_state(p.a, IBV_QPS_RESET));
	p.a->type = IBV_QPT_RC;
	t_up(p.a, NULL,
	     &(struct t_addr){.gid = dev->gid, .lid = dev->port.lid, .qpn = p.b->qp->qp_num});
	t_rc(ibv_post_send(p.a->qp, &send, &bad_send), ENOMEM);
	t_true(bad_send == &send, "bad is another one");
	t_ok(ibv_destroy_qp(p.a->qp));
	t_ok(ibv_destroy_cq(cq));
	p.a->qp = was;
	t_pair_free(&p);
}

/* Checks optional changes within RTS and INIT; without a state in the mask the state stays. */
static void test_same_state(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_addr self = t_addr(qp);
	struct ibv_qp_attr a = {.min_rnr_timer = 7, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_init_attr init;

	(void)state;
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_ACCESS_FLAGS), EINVAL); /* RESET */
	t_to_init(qp, NULL);
	t_ok(ibv_modify_qp(qp->qp, &a, IBV_QP_ACCESS_FLAGS));
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_MIN_RNR_TIMER), EINVAL);
	t_to_rtr(qp, NULL, &self);
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_MIN_RNR_TIMER), EINVAL); /* no RTR to RTR */
	t_to_rts(qp, NULL);
	t_ok(ibv_modify_qp(qp->qp, &a, IBV_QP_MIN_RNR_TIMER));
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_DEST_QPN), EINVAL);
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_TIMEOUT), EINVAL);
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_PORT), EINVAL);
	t_ok(ibv_query_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS,
			  &init));
	t_eq(a.qp_state, IBV_QPS_RTS);
	t_eq(a.min_rnr_timer, 7);
	t_eq(a.qp_access_flags & T_FULL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ);
	t_qp_free(qp);
}

/* Checks that the current state in the attributes must be the QP's state. */
static void test_cur_state(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

	(void)state;
	t_connect(qp, qp, NULL);
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	a.cur_qp_state = IBV_QPS_INIT;
	t_rc(ibv_modify_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	a.cur_qp_state = IBV_QPS_RTS;
	t_ok(ibv_modify_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE));
	t_ok(t_to_state(qp, IBV_QPS_SQD));
	a.cur_qp_state = IBV_QPS_SQD;
	t_ok(ibv_modify_qp(qp->qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE));
	t_eq(t_state(qp), IBV_QPS_RTS);
	t_qp_free(qp);
}

/* Checks values that no adapter accepts. */
static void test_values(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_qp_attr a, good;
	int mask;

	(void)state;
	mask = step_attr(qp, 0, &good);
	a = good;
	a.port_num = 0;
	t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	t_ok(ibv_modify_qp(qp->qp, &good, mask));
	mask = step_attr(qp, 1, &good);
	a = good;
	a.path_mtu = (enum ibv_mtu)0;
	t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	a.path_mtu = (enum ibv_mtu)6;
	t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	a = good;
	a.max_dest_rd_atomic = (uint8_t)(dev->attr.orig_attr.max_qp_rd_atom + 1);
	t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	a = good;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.sgid_index = (uint8_t)dev->port.gid_tbl_len;
	if (dev->port.gid_tbl_len < 256)
		t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	t_ok(ibv_modify_qp(qp->qp, &good, mask));
	mask = step_attr(qp, 2, &good);
	a = good;
	a.max_rd_atomic = (uint8_t)(dev->attr.orig_attr.max_qp_init_rd_atom + 1);
	t_rc(ibv_modify_qp(qp->qp, &a, mask), EINVAL);
	t_ok(ibv_modify_qp(qp->qp, &good, mask));
	t_qp_free(qp);
}

/* Checks that a query returns the attributes that were set, and how the QP was created. */
static void test_query(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 10, NULL, NULL, 0);
	struct t_spec s = {.cap = {9, 7, 3, 2, 16}, .scq = cq, .sq_sig_all = 1};
	struct t_qp *qp = t_qp(dev, &s);
	struct t_params p = t_params(dev);
	struct t_addr self = t_addr(qp);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	(void)state;
	p.sq_psn = 0xabcdef;
	p.rq_psn = 0x123;
	p.mtu = IBV_MTU_1024;
	p.max_rd_atomic = 3;
	p.max_dest_rd_atomic = 5;
	p.min_rnr_timer = 17;
	p.timeout = 19;
	p.retry_cnt = 2;
	p.rnr_retry = 4;
	p.access = IBV_ACCESS_REMOTE_WRITE;
	t_up(qp, &p, &self);
	memset(&a, 0xee, sizeof(a));
	t_ok(ibv_query_qp(qp->qp, &a, 0x1fffff, &init));
	t_eq(a.qp_state, IBV_QPS_RTS);
	t_eq(a.sq_psn, p.sq_psn);
	t_eq(a.rq_psn, p.rq_psn);
	t_eq(a.path_mtu, p.mtu);
	/* mlx5 keeps these as powers of two. */
	t_eq(a.max_rd_atomic, 4);
	t_eq(a.max_dest_rd_atomic, 8);
	t_eq(a.min_rnr_timer, 17);
	t_eq(a.timeout, 19);
	t_eq(a.retry_cnt, 2);
	t_eq(a.rnr_retry, 4);
	t_eq(a.dest_qp_num, self.qpn);
	t_eq(a.ah_attr.dlid, self.lid);
	t_eq(a.port_num, 1);
	t_eq(a.pkey_index, 0);
	t_eq(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	t_eq(a.sq_draining, 0);
	t_true(init.send_cq == qp->scq && init.recv_cq == qp->rcq && !init.srq, "CQs or SRQ");
	t_eq(init.qp_type, IBV_QPT_RC);
	t_eq(init.sq_sig_all, 1);
	t_true(init.cap.max_send_wr >= 9 && init.cap.max_recv_wr >= 7 &&
		       init.cap.max_send_sge >= 3 && init.cap.max_recv_sge >= 2 &&
		       init.cap.max_inline_data >= 16,
	       "less than was asked for");
	t_ok(memcmp(&init.cap, &qp->cap, sizeof(qp->cap)));
	t_qp_free(qp);
	t_ok(ibv_destroy_cq(cq));
}

/* Checks that more than the device offers is refused. */
static void test_create_limits(void **state)
{
	struct ibv_device_attr *attr = &dev->attr.orig_attr;
	struct t_spec s = {.cap = {1, 1, 1, 1, 0}};
	struct t_qp *qp;

	(void)state;
	s.cap.max_send_wr = (uint32_t)attr->max_qp_wr + 1;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == ENOMEM), "max_send_wr: %d",
	       errno);
	s.cap.max_send_wr = 1;
	s.cap.max_recv_wr = (uint32_t)attr->max_qp_wr + 1;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == ENOMEM), "max_recv_wr: %d",
	       errno);
	s.cap.max_recv_wr = 1;
	s.cap.max_send_sge = (uint32_t)attr->max_sge + 1;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == ENOMEM), "max_send_sge: %d",
	       errno);
	s.cap.max_send_sge = 1;
	s.cap.max_recv_sge = (uint32_t)attr->max_sge + 100;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == ENOMEM), "max_recv_sge: %d",
	       errno);
	s.cap.max_recv_sge = 1;
	s.cap.max_inline_data = 1 << 20;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == ENOMEM), "max_inline: %d", errno);
	s.cap.max_inline_data = 900; /* a ConnectX grants this */
	t_qp_free(t_qp(dev, &s));
	/* The smallest entry of a ConnectX has room for some that nobody asked for. */
	s.cap.max_inline_data = 0;
	qp = t_qp(dev, &s);
	t_eq(qp->cap.max_inline_data, 60);
	t_qp_free(qp);
	s.type = (enum ibv_qp_type)77;
	t_true(!t_qp_try(dev, &s) && (errno == EINVAL || errno == EOPNOTSUPP), "type: %d", errno);
}

/* Checks the errors for raw packets, which the kernel gives to nobody without CAP_NET_RAW, and an
 * InfiniBand port to nobody. */
static void test_raw_packets(void **state)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct was[2], without[2];
	const struct t_spec spec = {.type = IBV_QPT_RAW_PACKET};
	bool may;

	(void)state;
	t_eq(syscall(SYS_capget, &head, was), 0);
	may = was[0].effective & 1u << CAP_NET_RAW;
	errno = 0;
	t_true(!t_qp_try(dev, &spec) && errno == (may ? EOPNOTSUPP : EPERM), "errno %d", errno);
	memcpy(without, was, sizeof(was));
	without[0].effective &= ~(1u << CAP_NET_RAW);
	t_eq(syscall(SYS_capset, &head, without), 0);
	errno = 0;
	t_true(!t_qp_try(dev, &spec) && errno == EPERM, "without CAP_NET_RAW: errno %d", errno);
	t_eq(syscall(SYS_capset, &head, was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks),         cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_same_state),    cmocka_unit_test(test_cur_state),
		cmocka_unit_test(test_values),        cmocka_unit_test(test_query),
		cmocka_unit_test(test_create_limits), cmocka_unit_test(test_end_masks),
		cmocka_unit_test(test_no_work),       cmocka_unit_test(test_raw_packets),
	};

	return cmocka_run_group_tests_name("qp-states", tests, setup, t_teardown);
}
