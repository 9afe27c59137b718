/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_roce.c - Ethernet ports: the GID table, the needs of an address vector, and the headers of
 * received datagrams. Run with --link-layer ethernet.
 */
#include <arpa/inet.h>
#include <netinet/ip.h>

#include "util.h"

#define GIDS 6

/* libibverbs exports this, and ibv_devinfo uses it. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static union ibv_gid gid_at(int index)
{
	union ibv_gid gid;

	t_ok(ibv_query_gid(dev->ctx, 1, index, &gid));
	return gid;
}

static bool is_ipv4(int index)
{
	return index / 2 == 1;
}

static bool is_v2(int index)
{
	return index % 2;
}

/* Checks that each address has an entry of RoCE v1, then one of v2, and that there is no LID. */
static void test_table(void **state)
{
	static const union ibv_gid zero;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry e[GIDS + 1];
	union ibv_gid gid;

	(void)state;
	t_eq(dev->port.link_layer, IBV_LINK_LAYER_ETHERNET);
	t_eq(dev->port.lid, 0);
	t_eq(dev->port.sm_lid, 0);
	t_eq(dev->port.pkey_tbl_len, 1);
	t_eq(dev->port.flags, IBV_QPF_GRH_REQUIRED);
	t_eq(ibv_query_gid_table(dev->ctx, e, GIDS + 1, 0), GIDS);
	t_eq(ibv_query_gid_table(dev->ctx, e, GIDS - 1, 0), -EINVAL);
	for (int i = 0; i < dev->port.gid_tbl_len; i++) {
		struct ibv_gid_entry one;
		unsigned type;

		gid = gid_at(i);
		t_ok(ibv_query_gid_type(dev->ctx, 1, (unsigned)i, &type));
		if (i >= GIDS) {
			t_ok(memcmp(&gid, &zero, sizeof(gid)));
			t_rc(ibv_query_gid_ex(dev->ctx, 1, (uint32_t)i, &one, 0), ENODATA);
			continue;
		}
		t_ok(ibv_query_gid_ex(dev->ctx, 1, (uint32_t)i, &one, 0));
		t_ok(memcmp(&one.gid, &gid, sizeof(gid)));
		t_ok(memcmp(&one, &e[i], sizeof(one)));
		t_eq(one.gid_index, i);
		t_eq(one.gid_type, is_v2(i) ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
		t_eq(type, is_v2(i));
		if (is_ipv4(i))
			t_ok(memcmp(gid.raw, mapped, sizeof(mapped)));
		else if (i < 2)
			t_true(gid.raw[0] == 0xfe && gid.raw[1] == 0x80, "it isn't link-local");
		else
			t_true(gid.raw[0] == 0xfd, "it isn't global");
	}
	gid = gid_at(0);
	t_ok(memcmp(&e[1].gid, &gid, sizeof(gid)));
	gid = gid_at(2);
	t_ok(memcmp(&e[3].gid, &gid, sizeof(gid)));
}

static struct ibv_ah_attr way(int index)
{
	return (struct ibv_ah_attr){.port_num = 1,
				    .is_global = 1,
				    .grh = {.dgid = gid_at(index),
					    .sgid_index = (uint8_t)index,
					    .flow_label = 0xabcde,
					    .hop_limit = 77,
					    .traffic_class = 0x5a}};
}

/* Checks that ibv_create_ah(), and a QP on its way to RTR, return this value. */
static void check(const char *what, struct ibv_ah_attr a, int rc)
{
	struct t_params p = t_params(dev);
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_addr self = t_addr(qp);
	struct ibv_qp_attr attr;
	uint8_t mac[6];
	struct ibv_ah *ah;
	int mask;

	errno = 0;
	ah = ibv_create_ah(dev->pd, &a);
	t_true(ah ? !rc : errno == rc, "%s: an AH is %s", what, ah ? "made" : strerror(errno));
	if (ah)
		t_ok(ibv_destroy_ah(ah));
	t_to_init(qp, NULL);
	mask = t_attr_rtr(IBV_QPT_RC, &p, &self, &attr);
	attr.ah_attr = a;
	t_rc(ibv_modify_qp(qp->qp, &attr, mask), rc);
	t_qp_free(qp);
	if (rc)
		t_rc(ibv_resolve_eth_l2_from_gid(dev->ctx, &a, mac, NULL), rc);
}

static void test_address_vectors(void **state)
{
	struct ibv_ah_attr a = {.dlid = 1, .port_num = 1};

	(void)state;
	check("no GRH", a, EINVAL);
	for (int i = 0; i < GIDS; i++)
		check("the port itself", way(i), 0);
	a = way(0);
	a.grh.sgid_index = GIDS;
	check("an empty entry", a, ENODATA);
	a.grh.sgid_index = dev->port.gid_tbl_len;
	check("an index past the table", a, EINVAL);
	/* The MAC address is part of the GID, so no lookup is needed. */
	a = way(0);
	a.grh.dgid.raw[13] ^= 1;
	check("RoCE v1 to a link-local address that nobody has", a, 0);
	a.grh.sgid_index = 1;
	check("an IPv6 address that nobody has", a, ETIMEDOUT);
	a = way(3);
	a.grh.dgid.raw[15] ^= 0x80;
	check("an IPv4 address that nobody has", a, ETIMEDOUT);
	for (int i = 4; i < GIDS; i++) {
		struct ibv_ah_attr global = way(i);

		global.grh.dgid.raw[15] ^= 0x80;
		check("a global IPv6 address that nobody has", global, ETIMEDOUT);
	}
	a.grh.dgid = gid_at(1);
	check("from an IPv4 address to an IPv6 one", a, ETIMEDOUT);
}

static void test_mac(void **state)
{
	struct ibv_ah_attr a = way(3);
	union ibv_gid local = gid_at(0);
	uint8_t mac[6];
	uint16_t vlan = 0;

	(void)state;
	t_ok(ibv_resolve_eth_l2_from_gid(dev->ctx, &a, mac, &vlan));
	t_eq(vlan, 0xffff);
	/* RFC 4291, appendix A */
	t_eq(local.raw[8], mac[0] ^ 2);
	t_ok(memcmp(local.raw + 9, mac + 1, 2));
	t_eq(local.raw[11], 0xff);
	t_eq(local.raw[12], 0xfe);
	t_ok(memcmp(local.raw + 13, mac + 3, 3));
}

/* Returns the bytes of the headers and the padded data in a packet with immediate data: BTH, DETH,
 * ImmDt, data, ICRC. */
static uint32_t payload(uint32_t bytes)
{
	return 12 + 8 + 4 + (bytes + 3) / 4 * 4 + 4;
}

static void check_ipv4(const struct iphdr *ip, uint32_t bytes)
{
	union ibv_gid gid = gid_at(3);
	uint32_t own, sum = 0;
	uint16_t words[10];

	memcpy(&own, gid.raw + 12, sizeof(own));
	t_eq(ip->version, 4);
	t_eq(ip->ihl, 5);
	t_eq(ip->tos, 0x5a);
	t_eq(ip->ttl, 77);
	t_eq(ip->protocol, IPPROTO_UDP);
	/* IP, UDP, and the rest */
	t_eq(ntohs(ip->tot_len), 20 + 8 + payload(bytes));
	t_eq(ip->saddr, own);
	t_eq(ip->daddr, own);
	memcpy(words, ip, sizeof(words));
	for (int i = 0; i < 10; i++)
		sum += words[i];
	t_eq((sum & 0xffff) + (sum >> 16), 0xffff);
}

static void check_ipv6(const struct ibv_grh *grh, int index, uint32_t bytes)
{
	union ibv_gid gid = gid_at(index);

	t_eq(ntohl(grh->version_tclass_flow), 6u << 28 | 0x5au << 20 | 0xabcdeu);
	t_eq(grh->hop_limit, 77);
	t_eq(grh->next_hdr, is_v2(index) ? IPPROTO_UDP : 0x1b);
	t_eq(ntohs(grh->paylen), (is_v2(index) ? 8u : 0u) + payload(bytes));
	t_ok(memcmp(&grh->sgid, &gid, sizeof(gid)));
	t_ok(memcmp(&grh->dgid, &gid, sizeof(gid)));
}

/* Sends a datagram with immediate data by each entry of the table, and answers it. */
static void test_datagrams(void **state)
{
	static const struct t_spec ud = {.type = IBV_QPT_UD};
	enum { BYTES = 7 }; /* not whole words */

	(void)state;
	for (int i = 0; i < GIDS; i++) {
		struct t_pair p = t_pair(dev, &ud, NULL, 4096);
		struct ibv_sge one = t_sge(&p.ba, 0, BYTES), to = t_sge(&p.bb, 0, 200),
			       back_to = t_sge(&p.ba, 1024, 200);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_IMM, 1, &one, 1);
		struct ibv_grh *grh = (void *)p.bb.addr;
		struct ibv_ah_attr a = way(i), back;
		struct ibv_ah *ah = ibv_create_ah(dev->pd, &a);
		struct ibv_wc wc;

		t_true(ah, "ibv_create_ah: %s", strerror(errno));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = p.b->qp->qp_num;
		wr.wr.ud.remote_qkey = T_QKEY;
		t_recv(p.b, 2, &to, 1);
		t_recv(p.a, 3, &back_to, 1);
		t_post(p.a, &wr);
		wc = t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
		t_next(p.a->scq, 1, IBV_WC_SUCCESS);
		t_true(wc.wc_flags & IBV_WC_GRH, "no GRH");
		t_eq(wc.slid, 0);
		/* ConnectX reports the kind of packet in the place of a service level. */
		t_eq(wc.sl, !is_v2(i) ? 0 : is_ipv4(i) ? 2 : 1);
		if (is_v2(i) && is_ipv4(i))
			check_ipv4((void *)(p.bb.addr + T_GRH - 20), BYTES);
		else
			check_ipv6(grh, i, BYTES);
		t_ok(ibv_init_ah_from_wc(dev->ctx, 1, &wc, grh, &back));
		t_eq(back.grh.sgid_index, i);
		t_eq(back.grh.traffic_class, 0x5a);
		t_eq(back.grh.hop_limit, 77);
		t_ok(memcmp(&back.grh.dgid, &a.grh.dgid, sizeof(a.grh.dgid)));
		t_ok(ibv_destroy_ah(ah));
		ah = ibv_create_ah_from_wc(dev->pd, &wc, grh, 1);
		t_true(ah, "ibv_create_ah_from_wc: %s", strerror(errno));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = wc.src_qp;
		t_post(p.b, &wr);
		t_next(p.a->rcq, 3, IBV_WC_SUCCESS);
		t_next(p.b->scq, 1, IBV_WC_SUCCESS);
		t_ok(ibv_destroy_ah(ah));
		/* Checks a header that was damaged, or that belongs to another port. */
		p.bb.addr[T_GRH - 1] ^= 1;
		t_true(ibv_init_ah_from_wc(dev->ctx, 1, &wc, grh, &back), "it is taken for ours");
		t_pair_free(&p);
	}
}

/* Connects by each entry of the table. */
static void test_connections(void **state)
{
	(void)state;
	for (int i = 0; i < GIDS; i++) {
		struct t_params p = t_params(dev);
		struct t_pair pair;
		struct ibv_sge from, to;
		struct ibv_send_wr wr;

		dev->gid = gid_at(i);
		p.sgid_index = (uint8_t)i;
		pair = t_pair(dev, NULL, &p, 4096);
		from = t_sge(&pair.ba, 0, 1000);
		to = t_sge(&pair.bb, 0, 1000);
		wr = t_wr(IBV_WR_SEND, 1, &from, 1);
		t_recv(pair.b, 2, &to, 1);
		t_post(pair.a, &wr);
		t_next(pair.b->rcq, 2, IBV_WC_SUCCESS);
		t_next(pair.a->scq, 1, IBV_WC_SUCCESS);
		t_pair_free(&pair);
	}
	dev->gid = gid_at(dev->gid_index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),       cmocka_unit_test(test_address_vectors),
		cmocka_unit_test(test_mac),         cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_connections),
	};

	return cmocka_run_group_tests(tests, setup, t_teardown);
}
