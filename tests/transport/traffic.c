/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <stdlib.h>

/* The chances and limits of a run's operations. */
struct mix {
	int ntags, nsizes, nflows;
	int32_t tags[4];
	struct flow {
		int from, to, ctx;
		int32_t tag;
	} flows[6];
	uint64_t sizes[6];
	/* Chances, of 256. */
	uint32_t any_source, any_tag, probe, cancel, sync, patient, buffered, scattered, no_queue;
	bool pieces; /* the pieces of scattered buffers are named */
	uint32_t short_recv, in_order;
	/* With match bits: */
	uint32_t mask; /* the bits that most entries ignore */
	uint32_t other_mask, stays, software, picky, matched, delivered, close;
	enum tq_disposition dispositions[3];
};

/* Draws a network. Most runs are of one of two kinds: if nothing is scarce, tuples are used most;
 * if everything is, all fallbacks are. */
static void random_network(struct sim_rng *rng, struct model_conf *conf, bool harsh)
{
	conf->neps = (int)SIM_ONE_OF(rng, 2, 2, 2, 3, 4);
	for (int e = 0; e < conf->neps; e++)
		conf->node[e] = (int)sim_below(rng, (uint32_t)conf->neps);
	conf->hold_lanes = (int)SIM_ONE_OF(rng, 1, 1, 1, 2, 3);
	conf->lane_depth = (uint32_t)SIM_ONE_OF(rng, 1, 4, 64);
	conf->eager_bufs = 1000;
	conf->copy_pool = 100000;
	conf->srqs = 100;
	conf->lanes_ready = sim_chance(rng, 160);
	conf->lazy = (uint32_t)SIM_ONE_OF(rng, 0, 128, 256);
	for (int e = 0; e < conf->neps; e++)
		conf->rings[e] = (uint8_t)SIM_ONE_OF(rng, 0, 0, 15, sim_below(rng, 16));
	for (int e = 0; e < conf->neps; e++)
		conf->readable[e] = (uint8_t)SIM_ONE_OF(rng, 0, 15, sim_below(rng, 16));
	if (!harsh)
		return;
	conf->eager_bufs = (uint32_t)SIM_ONE_OF(rng, 2, 1000, 1000);
	conf->copy_pool = (uint64_t)SIM_ONE_OF(rng, 0, 300, 100000);
	conf->srqs = (uint32_t)SIM_ONE_OF(rng, 1, 3, 100, 100);
	conf->no_eager_buf = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->no_copy = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->no_reg = (uint32_t)SIM_ONE_OF(rng, 0, 10, 100);
	conf->no_registration = (uint32_t)SIM_ONE_OF(rng, 0, 0, 1, 2, sim_below(rng, 16), 15);
	conf->no_srq_room = (uint32_t)SIM_ONE_OF(rng, 0, 10, 100);
	conf->no_srq = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->lane_full = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->no_data = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->copy_fails = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
	conf->no_rdma = (uint32_t)SIM_ONE_OF(rng, 0, 30, 128);
}

static void random_params(struct sim_rng *rng, struct world *world, bool harsh)
{
	static struct tq_params defaults;
	bool mixed = sim_chance(rng, 8); /* each endpoint has a protocol of its own */
	struct tq_params p;
	struct tq_net_limits limits;

	if (!defaults.tuple_depth)
		world_defaults(&defaults);
	p = defaults;
	p.protocol = (int)SIM_ONE_OF(rng, TQ_PROTOCOL_TUPLEQ, TQ_PROTOCOL_COPY);
	if (sim_chance(rng, 32))
		p.protocol = (int)SIM_ONE_OF(rng, TQ_PROTOCOL_RPUT, TQ_PROTOCOL_RGET);
	p.rendezvous = (int)sim_below(rng, 2);
	p.eager_limit = SIM_ONE_OF(rng, 0, 8, 32, 64);
	p.eager_max = p.eager_limit + SIM_ONE_OF(rng, 0, 30, 100);
	p.copy_limit = SIM_ONE_OF(rng, 0, 32, 128);
	p.promote_after = SIM_ONE_OF(rng, 0, 0, 0, 1, 3);
	p.giveback_after = SIM_ONE_OF(rng, 0, 1, 1, 2, 8);
	p.wild_backoff = SIM_ONE_OF(rng, 0, 0, 0, 1, 4);
	p.tuples = harsh ? SIM_ONE_OF(rng, 1, 2, 1000) : SIM_ONE_OF(rng, 1, 3, 1000, 1000, 1000);
	p.tuple_records = SIM_ONE_OF(rng, 1, 2, 4096);
	p.unexpected_limit = SIM_ONE_OF(rng, 300, 1500, 1 << 20);
	p.intranode_queue = SIM_ONE_OF(rng, 0, 64, 1 << 20);
	p.intranode_copy = SIM_ONE_OF(rng, 0, 64, 1 << 20);
	p.rdma_chunk = SIM_ONE_OF(rng, 24, 1 << 20);
	limits = (struct tq_net_limits){
		.max_inline = (uint32_t)SIM_ONE_OF(rng, 0, 4, 16),
		.control_data_max = (uint32_t)(p.eager_max + SIM_ONE_OF(rng, 4, 16)),
		.rnr_bytes = SIM_ONE_OF(rng, 0, 4, 64),
		.max_direct = 1 << 20,
		.max_send = 1 << 20,
		.max_sge = (uint32_t)SIM_ONE_OF(rng, 1, 3, 6),
		.max_sge_rd = (uint32_t)SIM_ONE_OF(rng, 1, 4),
		.max_srq_sge = (uint32_t)SIM_ONE_OF(rng, 1, 3, 6),
		.srq_depth = (uint32_t)SIM_ONE_OF(rng, 2, 100, 100, 100),
	};
	if (limits.max_inline > limits.control_data_max)
		limits.max_inline = limits.control_data_max;
	if (harsh) {
		limits.max_direct = (uint64_t)SIM_ONE_OF(rng, 0, 40, 100, 1 << 20, 1 << 20);
		limits.max_send = (uint64_t)SIM_ONE_OF(rng, 100, 1 << 20, 1 << 20);
		limits.srq_depth = (uint32_t)SIM_ONE_OF(rng, 1, 3, 100);
	}
	for (int e = 0; e < world->model.conf.neps; e++) {
		world->model.ep[e].params = p;
		world->model.ep[e].limits = limits;
		/* Where there are rings the parameter allows them. */
		world->model.ep[e].params.intranode = (int)SIM_ONE_OF(
			rng, TQ_INTRANODE_AUTO, TQ_INTRANODE_SHM,
			world->model.conf.rings[e] ? TQ_INTRANODE_AUTO : TQ_INTRANODE_HCA);
		if (mixed)
			world->model.ep[e].params.protocol = (int)sim_below(rng, 4);
	}
}

static void random_mix(struct sim_rng *rng, struct mix *mix)
{
	mix->ntags = (int)SIM_ONE_OF(rng, 1, 1, 2, 3);
	for (int i = 0; i < mix->ntags; i++)
		mix->tags[i] = (int32_t)SIM_ONE_OF(rng, 0, 1, 2, 1000000, -5);
	mix->nsizes = 1 + (int)sim_below(rng, 5);
	for (int i = 0; i < mix->nsizes; i++)
		mix->sizes[i] = (uint64_t)SIM_ONE_OF(rng, 0, 1, 4, 8, 30, 60, 90, 130, 300);
	mix->any_source = (uint32_t)SIM_ONE_OF(rng, 0, 0, 8, 16, 50);
	mix->any_tag = (uint32_t)SIM_ONE_OF(rng, 0, 0, 8, 16, 50);
	mix->probe = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 10, 60);
	mix->cancel = (uint32_t)SIM_ONE_OF(rng, 0, 0, 10, 30, 100);
	mix->sync = (uint32_t)SIM_ONE_OF(rng, 0, 0, 60);
	mix->patient = (uint32_t)SIM_ONE_OF(rng, 0, 0, 128, 256);
	mix->buffered = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 128);
	mix->scattered = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 10, 128);
	mix->pieces = sim_chance(rng, 128);
	mix->no_queue = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 40);
	mix->short_recv = (uint32_t)SIM_ONE_OF(rng, 0, 0, 60);
	mix->in_order = (uint32_t)SIM_ONE_OF(rng, 0, 256, 256, 240);
}

/* Draws the tuples of the run's messages: few, so that each has many messages. */
static void random_flows(struct sim_rng *rng, struct world *world, struct mix *mix)
{
	uint32_t neps = (uint32_t)world->model.conf.neps;

	mix->nflows = (int)SIM_ONE_OF(rng, 1, 2, 2, 3, 4, 6);
	for (int i = 0; i < mix->nflows; i++) {
		struct flow *flow = &mix->flows[i];

		flow->from = (int)sim_below(rng, neps);
		flow->to = (int)sim_below(rng, neps);
		/* Programs seldom send to themselves. */
		if (flow->to == flow->from && !sim_chance(rng, 40))
			flow->to = (flow->from + 1) % (int)neps;
		/* Several senders send to one receiver, so that wildcards have a choice. */
		if (i && sim_chance(rng, 128))
			flow->to = mix->flows[0].to;
		flow->ctx = (int)sim_below(rng, (uint32_t)world->prog.nctx);
		flow->tag = mix->tags[sim_below(rng, (uint32_t)mix->ntags)];
	}
}

static bool add_send(struct sim_rng *rng, struct world *world, const struct mix *mix)
{
	const struct flow *flow = &mix->flows[sim_below(rng, (uint32_t)mix->nflows)];
	struct op op = {
		.kind = OP_SEND,
		.at = flow->from,
		.peer = flow->to,
		.ctx = flow->ctx,
		.tag = flow->tag,
		.len = mix->sizes[sim_below(rng, (uint32_t)mix->nsizes)],
		.flags = (sim_chance(rng, mix->sync) ? TQ_SEND_SYNC : 0) |
			 (sim_chance(rng, mix->patient) ? TQ_SEND_PATIENT : 0),
		.scattered = sim_chance(rng, mix->scattered),
		.npieces = mix->pieces ? 1 + sim_below(rng, PROGRAM_PIECES) : 0,
	};

	if (!op.scattered && sim_chance(rng, mix->buffered))
		op.flags |= TQ_SEND_BUFFERED;
	if (sim_chance(rng, mix->no_queue)) {
		op.tag = MODEL_ONCE_TAG - world->prog.nids;
		op.flags |= TQ_SEND_NO_QUEUE;
	}
	return program_add(&world->prog, &op);
}

/* Adds a receive that matches a message, but may be too short, or take another one. */
static void add_receive(struct sim_rng *rng, struct world *world, const struct mix *mix,
			const struct op *send)
{
	struct op op = {
		.kind = OP_RECV,
		.at = send->peer,
		.ctx = send->ctx,
		.peer = sim_chance(rng, mix->any_source) ? TQ_ANY_SOURCE : send->at,
		.tag = send->tag >= 0 && sim_chance(rng, mix->any_tag) ? TQ_ANY_TAG : send->tag,
		.len = sim_chance(rng, mix->short_recv) ? sim_below(rng, (uint32_t)send->len + 1)
							: send->len + sim_below(rng, 20),
		.scattered = sim_chance(rng, mix->scattered),
		.npieces = mix->pieces ? 1 + sim_below(rng, PROGRAM_PIECES) : 0,
	};
	struct op other = op;

	if (sim_chance(rng, mix->probe)) {
		other.kind = sim_chance(rng, 128) ? OP_PROBE : OP_MPROBE;
		/* The first message of a tuple with a queue only recalls it. */
		for (uint32_t i = sim_below(rng, 4); i < 4; i++)
			program_add(&world->prog, &other);
	}
	program_add(&world->prog, &op);
	if (sim_chance(rng, mix->cancel)) {
		other.kind = OP_CANCEL;
		other.receive = (int)sim_below(rng, (uint32_t)world->prog.recvs[op.at].n);
		program_add(&world->prog, &other);
	}
}

/* Makes a program of one tuple whose receives are always late. Returns its number of messages,
 * which suffices to have the queue given back. */
static int give_back_mix(struct world *world, struct mix *mix)
{
	mix->nflows = 1;
	mix->nsizes = 1;
	mix->sizes[0] = 4;
	mix->any_source = mix->any_tag = mix->probe = mix->cancel = 0;
	mix->sync = mix->scattered = mix->no_queue = 0;
	mix->in_order = 256;
	for (int e = 0; e < world->model.conf.neps; e++)
		world->model.ep[e].params.eager_limit = 8;
	world->late = true;
	return 200;
}

/* Has long messages held, without memory for them at the receiver. */
static void starve(struct sim_rng *rng, struct world *world, struct mix *mix)
{
	mix->sizes[0] = (uint64_t)SIM_ONE_OF(rng, 90, 130, 300);
	mix->no_queue = 0;
	world->model.conf.no_registration = 1u << mix->flows[0].to;
	world->model.conf.copy_pool = (uint64_t)SIM_ONE_OF(rng, 0, 100);
	world->plenty = false;
	world->late = true;
}

/* Gives each message its receive, so that contexts can be removed before they meet. */
static void remove_mix(struct world *world, struct mix *mix)
{
	mix->any_source = mix->any_tag = mix->probe = mix->cancel = 0;
	world->removes = true;
}

/* Has no message longer than its receive. Messages longer than the sink go direct, too: if such a
 * message is held, it needs memory, or its sender has to be given up. */
static void exact_mix(struct sim_rng *rng, struct world *world, struct mix *mix)
{
	world->model.conf.no_registration = world->model.conf.no_reg = 0;
	mix->nsizes = 1;
	mix->sizes[0] = (uint64_t)SIM_ONE_OF(rng, 30, 130, 300);
	mix->short_recv = 0;
	world->model.conf.exact = true;
	world->prog.ctx_flags |= TQ_CTX_EXACT_LENGTH;
	for (int e = 0; e < world->model.conf.neps; e++)
		world->model.ep[e].limits.max_direct = (uint64_t)SIM_ONE_OF(rng, 0, 40, 1 << 20);
}

/* Adds operations by which all endpoints withdraw the promise of exact_mix(). */
static void end_exact(struct sim_rng *rng, struct world *world, struct mix *mix)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		struct op op = {
			.kind = OP_FLAGS,
			.at = e,
			.flags = world->prog.ctx_flags & ~TQ_CTX_EXACT_LENGTH,
		};

		for (op.ctx = 0; op.ctx < world->prog.nctx; op.ctx++)
			program_add(&world->prog, &op);
	}
	mix->short_recv = (uint32_t)SIM_ONE_OF(rng, 0, 128);
}

static void shuffle(struct sim_rng *rng, const struct mix *mix, struct op *order[], int n)
{
	for (int i = n - 1; i > 0; i--) {
		int k = sim_chance(rng, mix->in_order) ? i : (int)sim_below(rng, (uint32_t)i + 1);
		struct op *tmp = order[i];

		order[i] = order[k];
		order[k] = tmp;
	}
}

static void random_bits_mix(struct sim_rng *rng, struct mix *mix)
{
	for (int i = 0; i < mix->ntags; i++)
		mix->tags[i] = (int32_t)sim_below(rng, 16);
	mix->no_queue = 0; /* few tags are used once */
	mix->mask = (uint32_t)SIM_ONE_OF(rng, 0, 0, 1, 8, 9);
	mix->other_mask = (uint32_t)SIM_ONE_OF(rng, 0, 0, 8, 30, 128);
	mix->stays = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 8, 40);
	mix->software = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 8, 40);
	mix->any_source = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 8, 40);
	mix->probe = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 8, 60);
	mix->picky = (uint32_t)SIM_ONE_OF(rng, 0, 60, 128);
	mix->matched = (uint32_t)SIM_ONE_OF(rng, 0, 0, 8, 60);
	mix->delivered = (uint32_t)SIM_ONE_OF(rng, 0, 0, 60);
	mix->close = (uint32_t)SIM_ONE_OF(rng, 0, 0, 0, 4);
	for (int i = 0; i < 3; i++)
		mix->dispositions[i] =
			(enum tq_disposition)SIM_ONE_OF(rng, TQ_KEEP, TQ_KEEP, TQ_STORE, TQ_DROP);
}

static bool add_bits_send(struct sim_rng *rng, struct world *world, const struct mix *mix)
{
	struct op *op;

	if (!add_send(rng, world, mix))
		return false;
	op = world->prog.ids[world->prog.nids];
	op->tag ^= (int32_t)(sim_below(rng, 16) & mix->mask);
	op->flags |= sim_chance(rng, mix->matched) ? TQ_SEND_MATCHED : 0;
	op->flags |= sim_chance(rng, mix->delivered) ? TQ_SEND_DELIVERED : 0;
	op->disposition = mix->dispositions[sim_below(rng, 3)];
	return true;
}

/* Adds an entry that fits a message, but may be too short, pass over the message, or take another
 * one. */
static void add_entry(struct sim_rng *rng, struct world *world, const struct mix *mix,
		      const struct op *send)
{
	struct op op = {
		.kind = OP_RECV,
		.at = send->peer,
		.ctx = send->ctx,
		.peer = sim_chance(rng, mix->any_source) ? TQ_ANY_SOURCE : send->at,
		.tag = send->tag,
		.ignore = sim_chance(rng, mix->other_mask) ? sim_below(rng, 16) : mix->mask,
		.len = sim_chance(rng, mix->short_recv) ? sim_below(rng, (uint32_t)send->len + 1)
							: send->len + sim_below(rng, 20),
		.scattered = sim_chance(rng, mix->scattered),
		.npieces = mix->pieces ? 1 + sim_below(rng, PROGRAM_PIECES) : 0,
	};
	struct op other = op;

	op.stays = sim_chance(rng, mix->stays);
	op.queue = !op.stays && !sim_chance(rng, mix->software);
	op.picky = !op.queue && sim_chance(rng, mix->picky);
	if (sim_chance(rng, mix->probe)) {
		other.kind = sim_chance(rng, 128) ? OP_PROBE : OP_MPROBE;
		program_add(&world->prog, &other);
	}
	program_add(&world->prog, &op);
	if (sim_chance(rng, mix->cancel)) {
		other.kind = OP_CANCEL;
		other.receive = (int)sim_below(rng, (uint32_t)world->prog.recvs[op.at].n);
		program_add(&world->prog, &other);
	}
	if (sim_chance(rng, mix->close)) {
		other.kind = OP_FLAGS;
		other.flags = sim_chance(rng, 128) ? TQ_CTX_CLOSED : 0;
		program_add(&world->prog, &other);
	}
}

/* Draws a program for contexts with match bits. */
static void bits_program(struct sim_rng *rng, struct world *world, struct mix *mix, int n)
{
	struct op *order[PROGRAM_IDS];

	world->prog.bits = true;
	/* The bits and the header in front of the data are a piece more. */
	for (int e = 0; e < world->model.conf.neps && sim_chance(rng, 240); e++) {
		struct tq_net_limits *limits = &world->model.ep[e].limits;

		limits->max_sge = limits->max_sge < 3 ? 2 : limits->max_sge;
		limits->max_srq_sge = limits->max_srq_sge < 3 ? 2 : limits->max_srq_sge;
	}
	/* The first messages of a run are sent before the mask is known. */
	n = (int)SIM_ONE_OF(rng, n, 40, 80);
	mix->ntags = (int)SIM_ONE_OF(rng, 1, 1, 2);
	world->plenty = false; /* some dispositions need memory */
	random_bits_mix(rng, mix);
	random_flows(rng, world, mix);
	for (int i = 0; i < n && add_bits_send(rng, world, mix); i++)
		order[i] = world->prog.ids[i + 1];
	shuffle(rng, mix, order, n);
	for (int i = 0; i < n; i++)
		add_entry(rng, world, mix, order[i]);
}

static void random_program(struct sim_rng *rng, struct world *world, bool bits)
{
	struct mix mix;
	struct op *order[PROGRAM_IDS];
	int n = (int)SIM_ONE_OF(rng, 6, 8, 12, 16, 24, 40);

	random_mix(rng, &mix);
	world->prog.nctx = sim_chance(rng, 40) ? 2 : 1;
	if (sim_chance(rng, 40) || bits) {
		bits_program(rng, world, &mix, n);
		return;
	}
	random_flows(rng, world, &mix);
	if (sim_chance(rng, 10))
		n = give_back_mix(world, &mix);
	else if (sim_chance(rng, 10))
		starve(rng, world, &mix);
	else if (sim_chance(rng, 16))
		remove_mix(world, &mix);
	else if (sim_chance(rng, 10))
		exact_mix(rng, world, &mix);
	if (!mix.any_source && sim_chance(rng, 60))
		world->prog.ctx_flags |= TQ_CTX_NO_ANY_SOURCE;
	if (!mix.any_tag && sim_chance(rng, 60))
		world->prog.ctx_flags |= TQ_CTX_NO_ANY_TAG;
	if (sim_chance(rng, 20))
		world->prog.ctx_flags |= TQ_CTX_OVERTAKING;
	for (int i = 0; i < n && add_send(rng, world, &mix); i++)
		order[i] = world->prog.ids[i + 1];
	shuffle(rng, &mix, order, n);
	for (int i = 0; i < n; i++) {
		if (world->model.conf.exact && i == n / 2)
			end_exact(rng, world, &mix);
		add_receive(rng, world, &mix, order[i]);
	}
}

struct world *traffic_world(uint64_t seed, const struct traffic_options *opt)
{
	struct world *world = calloc(1, sizeof(*world));
	bool harsh;

	sim_seed(&world->rng, seed);
	harsh = sim_chance(&world->rng, 80);
	world->plenty = !harsh;
	random_network(&world->rng, &world->model.conf, harsh);
	random_params(&world->rng, world, harsh);
	random_program(&world->rng, world, opt->bits);
	world->service = sim_chance(&world->rng, 100);
	world->late_ctxs = sim_chance(&world->rng, 64);
	world->may_break = opt->breaks;
	world->break_at = sim_below(&world->rng, (uint32_t)SIM_ONE_OF(&world->rng, 1, 100, 400));
	return world;
}
