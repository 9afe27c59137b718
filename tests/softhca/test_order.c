/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_order.c [reorder] - random mixes of operations over several QPs, against a model: each QP
 * changes its peer's memory in the order of posting, its completions come in that order, and so do
 * its messages. Between QPs nothing is promised; under --reorder (the argument) there must be an
 * inversion.
 */
#include "../random.h"
#include "util.h"

#define QPS    6
#define OPS    3000
#define REGION 16384 /* of each QP at its peer */
#define DEPTH  8
#define SLOT   4096

/* An operation. A later request may overtake a read unless it is fenced (IBA 9.7.5 and table
 * 76). */
struct op {
	uint64_t order; /* over all QPs */
	enum ibv_wr_opcode code;
	size_t len;
	unsigned char expect[SLOT]; /* the data that a read or an atomic returns */
};

struct lane {
	struct t_pair p;             /* a posts; bb is the region, ba holds DEPTH slots */
	unsigned char model[REGION]; /* the region's contents after all operations */
	struct op op[DEPTH];
	unsigned posted, done;
	unsigned sent, received;
	struct t_buf in;
	unsigned char msg[DEPTH * 2][SLOT]; /* messages under way */
	size_t msg_len[DEPTH * 2];
};

static uint64_t random_state = 12345;

static unsigned rnd(unsigned below)
{
	return (unsigned)(t_random(&random_state) % below);
}

static void random_bytes(char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (char)t_random(&random_state);
}

static void post_receive(struct lane *lane, unsigned i)
{
	struct ibv_sge in = t_sge(&lane->in, i % DEPTH * SLOT, SLOT);

	t_recv(lane->p.b, i, &in, 1);
}

/* Applies an atomic to the model. */
static void model_atomic(struct lane *lane, struct op *op, struct ibv_send_wr *wr, size_t off)
{
	uint64_t old, set;

	memcpy(&old, lane->model + off, 8);
	memcpy(op->expect, &old, 8);
	if (op->code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.compare_add = set = t_random(&random_state);
		set += old;
	} else { /* half of the compare values match */
		wr->wr.atomic.compare_add = old + rnd(2);
		wr->wr.atomic.swap = t_random(&random_state);
		set = wr->wr.atomic.compare_add == old ? wr->wr.atomic.swap : old;
	}
	memcpy(lane->model + off, &set, 8);
}

static void post_random(struct lane *lane, uint64_t order)
{
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	unsigned slot = lane->posted % DEPTH;
	struct op *op = &lane->op[slot];
	size_t off = rnd(REGION - SLOT) & ~7u, len = 1 + rnd(rnd(2) ? 64 : SLOT);
	char *local = lane->p.ba.addr + slot * SLOT;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	op->code = codes[rnd(sizeof(codes) / sizeof(codes[0]))];
	op->order = order;
	if (op->code == IBV_WR_ATOMIC_FETCH_AND_ADD || op->code == IBV_WR_ATOMIC_CMP_AND_SWP)
		len = 8;
	op->len = len;
	random_bytes(local, len);
	sge = t_sge(&lane->p.ba, slot * SLOT, len);
	wr = t_rdma(op->code, lane->posted, &sge, 1, (uintptr_t)lane->p.bb.addr + off,
		    lane->p.bb.mr->rkey);
	if (op->code != IBV_WR_RDMA_READ)
		wr.send_flags |= IBV_SEND_FENCE;
	if (op->code == IBV_WR_SEND) {
		memcpy(lane->msg[lane->sent % (DEPTH * 2)], local, len);
		lane->msg_len[lane->sent++ % (DEPTH * 2)] = len;
	} else if (op->code == IBV_WR_RDMA_WRITE) {
		memcpy(lane->model + off, local, len);
	} else if (op->code == IBV_WR_RDMA_READ) {
		memcpy(op->expect, lane->model + off, len);
	} else {
		model_atomic(lane, op, &wr, off);
	}
	t_post(lane->p.a, &wr);
	lane->posted++;
}

static void take_completion(struct lane *lane, const struct ibv_wc *wc)
{
	struct op *op = &lane->op[lane->done % DEPTH];

	t_eq(wc->status, IBV_WC_SUCCESS);
	t_eq(wc->wr_id, lane->done);
	if (op->code != IBV_WR_SEND && op->code != IBV_WR_RDMA_WRITE)
		t_true(!memcmp(lane->p.ba.addr + lane->done % DEPTH * SLOT, op->expect, op->len),
		       "operation %u (opcode %d) returned other data", lane->done, op->code);
	lane->done++;
}

static void take_message(struct lane *lane, const struct ibv_wc *wc)
{
	unsigned i = lane->received % (DEPTH * 2);

	t_eq(wc->status, IBV_WC_SUCCESS);
	t_eq(wc->wr_id, lane->received);
	t_eq(wc->byte_len, lane->msg_len[i]);
	t_true(!memcmp(lane->in.addr + lane->received % DEPTH * SLOT, lane->msg[i],
		       lane->msg_len[i]),
	       "message %u has other data", lane->received);
	post_receive(lane, lane->received + DEPTH);
	lane->received++;
}

static struct lane *lane_of(struct lane *lanes, uint32_t qpn, bool receiver)
{
	for (unsigned i = 0; i < QPS; i++)
		if ((receiver ? lanes[i].p.b : lanes[i].p.a)->qp->qp_num == qpn)
			return &lanes[i];
	t_fail("a completion of an unknown QP");
}

static void open_lanes(struct t_dev *dev, struct lane *lanes, struct ibv_cq *scq,
		       struct ibv_cq *rcq)
{
	struct t_spec spec = {.scq = scq, .rcq = rcq};

	for (unsigned i = 0; i < QPS; i++) {
		struct lane *lane = &lanes[i];

		lane->p = t_pair(dev, &spec, NULL, DEPTH * SLOT);
		lane->in = t_buf(dev, DEPTH * SLOT);
		random_bytes(lane->p.bb.addr, REGION);
		memcpy(lane->model, lane->p.bb.addr, REGION);
		for (unsigned k = 0; k < DEPTH; k++)
			post_receive(lane, k);
	}
}

/* Runs the mix. Returns how many completions came before one of an earlier request of another
 * QP. */
static unsigned run_mix(struct t_dev *dev, struct lane *lanes)
{
	struct ibv_cq *scq = ibv_create_cq(dev->ctx, 256, NULL, NULL, 0);
	struct ibv_cq *rcq = ibv_create_cq(dev->ctx, 256, NULL, NULL, 0);
	unsigned posted = 0, done = 0, inversions = 0;
	uint64_t newest = 0, t0 = t_now();

	open_lanes(dev, lanes, scq, rcq);
	for (unsigned received = 0, sent = 0; done < OPS || received < sent;) {
		struct lane *lane = &lanes[rnd(QPS)];
		struct ibv_wc wc;

		t_true(t_ms_since(t0) < 3 * T_DEADLINE_MS, "only %u of %u are done", done, OPS);
		if (posted < OPS && lane->posted - lane->done < DEPTH &&
		    lane->sent - lane->received < DEPTH) {
			unsigned before = lane->sent;

			post_random(lane, posted++);
			sent += lane->sent - before;
		}
		if (ibv_poll_cq(rcq, 1, &wc) == 1) {
			take_message(lane_of(lanes, wc.qp_num, true), &wc);
			received++;
		}
		if (rnd(3) || ibv_poll_cq(scq, 1, &wc) != 1)
			continue;
		lane = lane_of(lanes, wc.qp_num, false);
		inversions += lane->op[lane->done % DEPTH].order < newest;
		if (lane->op[lane->done % DEPTH].order > newest)
			newest = lane->op[lane->done % DEPTH].order;
		take_completion(lane, &wc);
		done++;
	}
	for (unsigned i = 0; i < QPS; i++) {
		t_true(!memcmp(lanes[i].p.bb.addr, lanes[i].model, REGION), "QP %u left other data",
		       i);
		t_pair_free(&lanes[i].p);
		t_buf_free(&lanes[i].in);
	}
	t_ok(ibv_destroy_cq(scq));
	t_ok(ibv_destroy_cq(rcq));
	return inversions;
}

static bool reorder;

static void test_mix(void **state)
{
	struct lane *lanes = calloc(QPS, sizeof(*lanes));
	unsigned inversions;

	t_true(lanes, "out of memory");
	inversions = run_mix(*state, lanes);
	if (reorder)
		t_true(inversions > 0, "no two completions of different QPs changed places");
	free(lanes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mix, t_setup, t_teardown),
	};

	reorder = argc > 1 && !strcmp(argv[1], "reorder");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
