/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ud.c - UD: addressing, the 40 bytes before the payload, Q_Keys, dropped datagrams, and
 * multicast.
 */
#include <arpa/inet.h>
#include <sys/mman.h>

#include "ud.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void test_data(void **state)
{
	size_t mtu = 128u << dev->port.active_mtu;
	const size_t sizes[] = {0, 1, 8, 100, 192, 193, mtu - 1, mtu};

	(void)state;
	for (int grh = dev->roce; grh < 2; grh++) {
		struct ud_way w = ud_way(dev, grh);
		struct t_pair *pair = &w.p;

		for (unsigned i = 0; i < 16; i++) {
			size_t n = sizes[i / 2];
			struct ibv_sge from = t_sge(&pair->ba, 0, n);
			struct ibv_send_wr wr = ud_wr(&w, i, &from);
			struct ibv_wc wc;

			if (i & 1) {
				wr.opcode = IBV_WR_SEND_WITH_IMM;
				wr.imm_data = htonl(i);
			}
			t_fill(pair->ba.addr, n, i);
			memset(pair->bb.addr, 0x99, 8192);
			t_recv(pair->b, i, &w.to, 1);
			t_post(pair->a, &wr);
			wc = t_next(pair->b->rcq, i, IBV_WC_SUCCESS);
			t_eq(wc.opcode, IBV_WC_RECV);
			t_eq(wc.byte_len, T_GRH + n);
			t_eq(wc.qp_num, pair->b->qp->qp_num);
			t_eq(wc.src_qp, pair->a->qp->qp_num);
			t_eq(wc.slid, dev->port.lid);
			/* RoCE reports the kind of packet: v2 with an IPv6 header. */
			t_eq(wc.sl, dev->roce ? 1 : 0);
			t_eq(!!(wc.wc_flags & IBV_WC_GRH), grh);
			t_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), i & 1);
			if (i & 1)
				t_eq(wc.imm_data, htonl(i));
			t_check(pair->bb.addr + T_GRH, n, i);
			t_check_byte(pair->bb.addr + T_GRH + n, 100, 0x99);
			if (grh) {
				struct ibv_grh *header = (void *)pair->bb.addr;

				t_ok(memcmp(&header->sgid, &dev->gid, 16));
				t_ok(memcmp(&header->dgid, &dev->gid, 16));
				t_eq(ntohl(header->version_tclass_flow) >> 28, 6);
			}
			t_next(pair->a->scq, i, IBV_WC_SUCCESS);
		}
		ud_way_free(&w);
	}
}

/* Checks that the 40 bytes and the payload run over several SGEs. */
static void test_sges(void **state)
{
	struct ud_way w = ud_way(dev, true);
	struct t_pair *pair = &w.p;
	struct ibv_sge to[3] = {t_sge(&pair->bb, 0, 30), t_sge(&pair->bb, 1000, 30),
				t_sge(&pair->bb, 2000, 300)};
	struct ibv_sge from[2] = {t_sge(&pair->ba, 0, 11), t_sge(&pair->ba, 11, 189)};
	struct ibv_send_wr wr = ud_wr(&w, 1, from);

	(void)state;
	wr.num_sge = 2;
	t_fill(pair->ba.addr, 200, 1);
	t_recv(pair->b, 2, to, 3);
	t_post(pair->a, &wr);
	t_eq(t_next(pair->b->rcq, 2, IBV_WC_SUCCESS).byte_len, T_GRH + 200);
	t_ok(memcmp(pair->bb.addr + 1010, pair->ba.addr, 20));
	t_ok(memcmp(pair->bb.addr + 2000, pair->ba.addr + 20, 180));
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	ud_way_free(&w);
}

static void test_inline(void **state)
{
	struct ud_way w = ud_way(dev, dev->roce);
	char data[32];
	struct ibv_sge from = {(uintptr_t)data, sizeof(data), 0};
	struct ibv_send_wr wr = ud_wr(&w, 1, &from);

	(void)state;
	wr.send_flags |= IBV_SEND_INLINE;
	t_fill(data, sizeof(data), 5);
	t_recv(w.p.b, 2, &w.to, 1);
	t_post(w.p.a, &wr);
	memset(data, 0, sizeof(data));
	t_next(w.p.b->rcq, 2, IBV_WC_SUCCESS);
	t_check(w.p.bb.addr + T_GRH, sizeof(data), 5);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	ud_way_free(&w);
}

static void test_self(void **state)
{
	struct t_qp *qp = t_qp(dev, &ud_spec);
	struct t_addr self = t_addr(qp);
	struct ibv_ah *ah = t_ah(dev, &self, false);
	struct t_buf b = t_buf(dev, 8192);
	struct ibv_sge from = t_sge(&b, 0, 100), to = t_sge(&b, 4096, 200);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &from, 1);

	(void)state;
	t_up(qp, NULL, &self);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = self.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	t_fill(b.addr, 100, 1);
	t_recv(qp, 2, &to, 1);
	t_post(qp, &wr);
	t_eq(t_next(qp->rcq, 2, IBV_WC_SUCCESS).src_qp, self.qpn);
	t_check(b.addr + 4096 + T_GRH, 100, 1);
	t_next(qp->scq, 1, IBV_WC_SUCCESS);
	t_qp_free(qp);
	t_ok(ibv_destroy_ah(ah));
	t_buf_free(&b);
}

/* Checks an answer by an AH made from the completion. */
static void test_reply(void **state)
{
	(void)state;
	for (int grh = dev->roce; grh < 2; grh++) {
		struct ud_way w = ud_way(dev, grh);
		struct t_pair *pair = &w.p;
		struct ibv_sge one = t_sge(&pair->ba, 0, 8), to = t_sge(&pair->ba, 4096, 200);
		struct ibv_send_wr wr = ud_wr(&w, 1, &one);
		struct ibv_ah *back;
		struct ibv_wc wc;

		t_recv(pair->b, 2, &w.to, 1);
		t_recv(pair->a, 3, &to, 1);
		t_post(pair->a, &wr);
		wc = t_next(pair->b->rcq, 2, IBV_WC_SUCCESS);
		back = ibv_create_ah_from_wc(dev->pd, &wc, (struct ibv_grh *)(void *)pair->bb.addr,
					     1);
		t_true(back, "ibv_create_ah_from_wc: %s", strerror(errno));
		wr.wr.ud.ah = back;
		wr.wr.ud.remote_qpn = wc.src_qp;
		t_post(pair->b, &wr);
		wc = t_next(pair->a->rcq, 3, IBV_WC_SUCCESS);
		t_eq(wc.src_qp, pair->b->qp->qp_num);
		t_eq(!!(wc.wc_flags & IBV_WC_GRH), grh);
		t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
		t_next(pair->b->scq, 1, IBV_WC_SUCCESS);
		t_ok(ibv_destroy_ah(back));
		ud_way_free(&w);
	}
}

/* Checks that the header repeats the attributes of the AH, and that the AH of the answer repeats
 * the header. */
static void test_grh(void **state)
{
	struct ud_way w = ud_way(dev, dev->roce);
	struct t_pair *pair = &w.p;
	struct ibv_ah_attr a = {.dlid = dev->port.lid,
				.port_num = 1,
				.is_global = 1,
				.sl = 0x13, /* as with mlx5, 4 bits count */
				.grh = {.dgid = dev->gid,
					.flow_label = 0xabcde,
					.hop_limit = 77,
					.sgid_index = dev->gid_index,
					.traffic_class = 0x5a}};
	struct ibv_ah *ah = ibv_create_ah(dev->pd, &a);
	struct ibv_sge one = t_sge(&pair->ba, 0, 8);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_grh *grh = (void *)pair->bb.addr;
	struct ibv_ah_attr back;
	struct ibv_wc wc;

	(void)state;
	t_true(ah, "ibv_create_ah: %s", strerror(errno));
	wr.wr.ud.ah = ah;
	t_recv(pair->b, 2, &w.to, 1);
	t_post(pair->a, &wr);
	wc = t_next(pair->b->rcq, 2, IBV_WC_SUCCESS);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	t_eq(ntohl(grh->version_tclass_flow), 6u << 28 | 0x5au << 20 | 0xabcdeu);
	t_eq(grh->hop_limit, 77);
	t_ok(ibv_init_ah_from_wc(dev->ctx, 1, &wc, grh, &back));
	t_ok(memcmp(&back.grh.dgid, &dev->gid, 16));
	t_eq(back.grh.flow_label, a.grh.flow_label);
	t_eq(back.grh.hop_limit, a.grh.hop_limit);
	t_eq(back.grh.traffic_class, a.grh.traffic_class);
	t_eq(back.grh.sgid_index, dev->gid_index);
	t_eq(back.sl, dev->roce ? wc.sl : 3);
	t_eq(back.dlid, dev->port.lid);
	t_ok(ibv_destroy_ah(ah));
	ud_way_free(&w);
}

/* Checks that a datagram is dropped, with success at the sender, if no receive is posted, if no
 * QP is there, and if the Q_Key is wrong. */
static void test_dropped(void **state)
{
	struct ud_way w = ud_way(dev, dev->roce);
	struct t_pair *pair = &w.p;
	struct ibv_sge one = t_sge(&pair->ba, 0, 8);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_port_attr before, after;

	(void)state;
	t_post(pair->a, &wr);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	/* Delivery may be later than the sender's completion. */
	t_none(pair->b->rcq, 5);
	t_recv(pair->b, 2, &w.to, 1);
	wr.wr.ud.remote_qpn ^= 0x123;
	t_post(pair->a, &wr);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	wr = ud_wr(&w, 1, &one);
	t_ok(ibv_query_port(dev->ctx, 1, &before));
	wr.wr.ud.remote_qkey++;
	t_post(pair->a, &wr);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	ud_marker(&w, 2);
	t_ok(ibv_query_port(dev->ctx, 1, &after));
	t_true(after.qkey_viol_cntr > before.qkey_viol_cntr, "no Q_Key violation was counted");
	t_eq(t_state(pair->a), IBV_QPS_RTS);
	t_eq(t_state(pair->b), IBV_QPS_RTS);
	ud_way_free(&w);
}

/* Checks that a Q_Key with the high bit set stands for the QP's own (IBA 10.2.5). */
static void test_qkey_high_bit(void **state)
{
	struct ud_way w = ud_way(dev, dev->roce);
	struct t_pair *pair = &w.p;
	struct ibv_sge one = t_sge(&pair->ba, 0, 8);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_qp_attr attr = {.qkey = T_QKEY + 5};

	(void)state;
	t_recv(pair->b, 2, &w.to, 1);
	wr.wr.ud.remote_qkey = 0x80000000u | 0x12345;
	t_post(pair->a, &wr);
	t_next(pair->b->rcq, 2, IBV_WC_SUCCESS);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	t_ok(ibv_modify_qp(pair->a->qp, &attr, IBV_QP_QKEY));
	t_recv(pair->b, 3, &w.to, 1);
	t_post(pair->a, &wr);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	ud_marker(&w, 3);
	ud_way_free(&w);
}

/* Checks a datagram longer than the MTU: refused at once, or LOC_LEN_ERR. One longer than its
 * receive is not received. */
static void test_too_long(void **state)
{
	struct ud_way w = ud_way(dev, dev->roce);
	struct t_pair *pair = &w.p;
	struct ibv_sge one = t_sge(&pair->ba, 0, (128u << dev->port.active_mtu) + 1);
	struct ibv_sge small;
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_wc wc;
	int rc;

	(void)state;
	t_recv(pair->b, 2, &w.to, 1);
	rc = t_post_try(pair->a, &wr);
	t_true(rc == 0 || rc == EINVAL || rc == EMSGSIZE, "returned %d", rc);
	if (!rc)
		t_next(pair->a->scq, 1, IBV_WC_LOC_LEN_ERR);
	t_none(pair->b->rcq, 2);
	ud_way_free(&w);

	w = ud_way(dev, dev->roce);
	small = t_sge(&pair->bb, 0, T_GRH + 10);
	one = t_sge(&pair->ba, 0, 11);
	wr = ud_wr(&w, 1, &one);
	t_recv(pair->b, 2, &small, 1);
	t_post(pair->a, &wr);
	t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	t_ok(t_to_state(pair->b, IBV_QPS_ERR));
	t_poll(pair->b->rcq, &wc, 1);
	t_eq(wc.wr_id, 2);
	t_true(wc.status != IBV_WC_SUCCESS, "a message that doesn't fit was received");
	ud_way_free(&w);
}

static void test_opcodes(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ud_way w = ud_way(dev, dev->roce);
	struct ibv_sge one = t_sge(&w.p.ba, 0, 8);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);

	(void)state;
	for (int i = 0; i < 4; i++) {
		wr.opcode = ops[i];
		t_rc(t_post_try(w.p.a, &wr), EINVAL);
	}
	ud_way_free(&w);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr a = {.dlid = dev->port.lid, .port_num = 0};

	(void)state;
	t_true(!ibv_create_ah(dev->pd, &a), "an AH on port 0");
	a.port_num = 2;
	t_true(!ibv_create_ah(dev->pd, &a), "an AH on port 2");
	if (dev->port.gid_tbl_len < 255) {
		a.port_num = 1;
		a.is_global = 1;
		a.grh.sgid_index = (uint8_t)dev->port.gid_tbl_len;
		t_true(!ibv_create_ah(dev->pd, &a), "an AH with a GID index past the table");
	}
}

/* Checks a receive in memory that is paged on demand and gone: an error, no SIGSEGV. */
static void test_absent(void **state)
{
	struct t_buf in = t_buf_in(dev->pd, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge to = t_sge(&in, 0, 8192);
	struct ud_way w = ud_way(dev, dev->roce);
	struct ibv_sge one = t_sge(&w.p.ba, 0, 1000);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_wc wc;

	(void)state;
	t_recv(w.p.b, 2, &to, 1);
	t_recv(w.p.b, 3, &to, 1);
	t_post(w.p.a, &wr);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	t_next(w.p.b->rcq, 2, IBV_WC_SUCCESS);
	t_ok(mprotect(in.addr, in.len, PROT_NONE));
	t_post(w.p.a, &wr);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	t_poll(w.p.b->rcq, &wc, 1);
	t_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ud_way_free(&w);
	t_buf_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),          cmocka_unit_test(test_sges),
		cmocka_unit_test(test_inline),        cmocka_unit_test(test_self),
		cmocka_unit_test(test_reply),         cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_qkey_high_bit), cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_opcodes),       cmocka_unit_test(test_ah),
		cmocka_unit_test(ud_test_multicast),  cmocka_unit_test(test_grh),
		cmocka_unit_test(test_absent),
	};

	return cmocka_run_group_tests_name("ud", tests, setup, t_teardown);
}
