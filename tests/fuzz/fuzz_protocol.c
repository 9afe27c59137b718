/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol against a hostile peer. Three endpoints run on the model of tests/transport: 0 is
 * the victim, 2 is honest, and 1 runs the protocol, too, but the fuzzer is between 1 and 0. The
 * fuzzer changes, drops, doubles, reorders and forges messages from 1 to 0, and sends data that
 * nobody has announced. So the real traffic reaches every state by itself.
 *
 * The input decides everything: the network, whether the context has match bits, the users'
 * operations, and which step comes next.
 * Between 0 and 2 all checks of tests/transport must hold (matching, data, no stall, requests that
 * end once). At 0 nothing may be written beside a receive, and nothing may be left after the
 * connection to 1 was given up.
 */
#include <stdlib.h>

#include "entries.h"
#include "input.h"
#include "proto/common/rx_objects.h"
#include "users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the network and the parameters ---- */

static void choose_network(struct input *in, struct model_conf *conf)
{
	*conf = (struct model_conf){
		.neps = 3,
		.node = {0, 1, 2},
		.hostile = true,
		.hold_lanes = (int)INPUT_ONE_OF(in, 1, 2, 3),
		.lane_depth = (uint32_t)INPUT_ONE_OF(in, 64, 1, 4),
		.eager_bufs = (uint32_t)INPUT_ONE_OF(in, 1000, 2),
		.copy_pool = (uint64_t)INPUT_ONE_OF(in, 100000, 300, 0),
		.srqs = (uint32_t)INPUT_ONE_OF(in, 100, 3, 1),
		.lanes_ready = input_below(in, 2) == 0,
		.lazy = (uint32_t)INPUT_ONE_OF(in, 0, 128, 256),
		.no_eager_buf = (uint32_t)INPUT_ONE_OF(in, 0, 0, 30, 128),
		.no_copy = (uint32_t)INPUT_ONE_OF(in, 0, 0, 30, 128),
		.no_reg = (uint32_t)INPUT_ONE_OF(in, 0, 0, 10, 100),
		.no_srq_room = (uint32_t)INPUT_ONE_OF(in, 0, 0, 10, 100),
		.no_srq = (uint32_t)INPUT_ONE_OF(in, 0, 0, 30, 128),
		.lane_full = (uint32_t)INPUT_ONE_OF(in, 0, 0, 30, 128),
		.no_data = (uint32_t)INPUT_ONE_OF(in, 0, 0, 30, 128),
	};
}

/* Chooses by `how` which endpoints send through rings, which may read whose memory, and whether
 * such a copy may fail. */
static void choose_shared_memory(uint8_t how, struct model_conf *conf, struct tq_params *params)
{
	static const uint8_t some[] = {0, 0, 7, 7, 1, 6, 2, 5};

	params->intranode = how & 128 ? TQ_INTRANODE_SHM : TQ_INTRANODE_AUTO;
	params->intranode_queue = params->intranode_copy = 64;
	for (int e = 0; e < conf->neps; e++) {
		conf->rings[e] = some[how / 2 % 8];
		conf->readable[e] = some[how / 16 % 8];
	}
	conf->copy_fails = how % 2 ? 64 : 0;
}

static void choose_params(struct input *in, uint8_t shared_memory, struct world *world)
{
	struct tq_params p;
	struct tq_net_limits limits;

	world_defaults(&p);
	choose_shared_memory(shared_memory, &world->model.conf, &p);
	p.protocol = (int)INPUT_ONE_OF(in, TQ_PROTOCOL_TUPLEQ, TQ_PROTOCOL_COPY, TQ_PROTOCOL_TUPLEQ,
				       TQ_PROTOCOL_RPUT, TQ_PROTOCOL_RGET);
	p.rendezvous = (int)input_below(in, 2);
	p.eager_limit = INPUT_ONE_OF(in, 32, 0, 8, 64);
	p.copy_limit = INPUT_ONE_OF(in, 32, 0, 128);
	p.promote_after = INPUT_ONE_OF(in, 0, 1, 3);
	p.wild_backoff = INPUT_ONE_OF(in, 0, 1, 4);
	p.tuples = INPUT_ONE_OF(in, 1000, 1, 2);
	p.unexpected_limit = INPUT_ONE_OF(in, 1 << 20, 60, 300);
	limits = (struct tq_net_limits){
		.max_inline = (uint32_t)INPUT_ONE_OF(in, 16, 0, 4),
		.control_data_max = (uint32_t)(p.eager_limit + INPUT_ONE_OF(in, 4, 16)),
		.max_direct = (uint64_t)INPUT_ONE_OF(in, 1 << 20, 0, 40, 100),
		.max_send = (uint64_t)INPUT_ONE_OF(in, 1 << 20, 100),
		.max_sge = (uint32_t)INPUT_ONE_OF(in, 1, 3),
		.max_sge_rd = 2,
		.max_srq_sge = 3,
		.srq_depth = (uint32_t)INPUT_ONE_OF(in, 100, 1, 3),
	};
	p.eager_max = limits.control_data_max;
	if (limits.max_inline > limits.control_data_max)
		limits.max_inline = limits.control_data_max;
	for (int e = 0; e < world->model.conf.neps; e++) {
		world->model.ep[e].params = p;
		world->model.ep[e].limits = limits;
	}
}

/* ---- the users' operations ---- */

static const int32_t tags[] = {0, 1, 2, -5};

/* Chooses a peer: traffic is between 0 and each of the others, or within 0. */
static int choose_peer(struct input *in, int ep)
{
	return ep == MODEL_VICTIM ? (int)INPUT_ONE_OF(in, 1, 1, 2, 2, 1, 0) : MODEL_VICTIM;
}

/* Fills in the members that only operations with match bits have. */
static void choose_bits(struct input *in, struct op *op)
{
	static const int32_t bits[] = {0, 1, 8, 15};
	static const uint32_t masks[] = {0, 0, 8, 9};
	uint8_t how = input_byte(in);

	op->tag = bits[how % 4];
	if (op->kind == OP_SEND) {
		op->flags |= how / 4 % 4 == 3 ? TQ_SEND_MATCHED : 0;
		op->disposition = (enum tq_disposition)(how / 16 % 3);
		return;
	}
	op->ignore = masks[how / 4 % 4];
	op->stays = how / 16 % 4 == 3;
	op->queue = !op->stays && how / 64;
	op->picky = !op->queue && how / 64 == 1;
	if (op->kind == OP_CANCEL && how / 64 == 3) {
		op->kind = OP_FLAGS;
		op->flags = how / 16 % 2 ? TQ_CTX_CLOSED : 0;
	}
}

static void do_op(struct input *in, struct world *world, unsigned what)
{
	static const enum op_kind kinds[] = {OP_SEND, OP_RECV,  OP_SEND,   OP_RECV,
					     OP_RECV, OP_PROBE, OP_MPROBE, OP_CANCEL};
	struct op *added, op = {.kind = kinds[what % 8], .at = (int)(what / 8) % 3};
	uint8_t how = input_byte(in);

	/* Entries have numbers, of which the last ones are kept for the end. */
	if (world->prog.bits && world->nposted[op.at] >= PROGRAM_ORDERS - MODEL_EPS)
		return;
	op.peer = choose_peer(in, op.at);
	op.tag = tags[how % 4];
	op.len = (uint64_t)INPUT_ONE_OF(in, 4, 0, 1, 8, 30, 60, 90, 130, 300);
	op.scattered = how / 4 % 8 == 7;
	if (op.kind == OP_SEND) {
		op.flags = how / 32 % 4 == 3 ? TQ_SEND_SYNC : 0;
	} else if (op.kind == OP_CANCEL) {
		op.receive = input_byte(in);
	} else {
		if (how / 32 % 2)
			op.peer = TQ_ANY_SOURCE;
		if (how / 64 % 2 && op.tag >= 0)
			op.tag = TQ_ANY_TAG;
	}
	if (world->prog.bits)
		choose_bits(in, &op);
	added = program_add(&world->prog, &op);
	if (!added)
		return;
	/* The stream would not move on otherwise. */
	if (op.kind == OP_SEND)
		world->prog.sends[op.at].next++;
	else
		world->prog.recvs[op.at].next++;
	users_op(world, added);
}

/* ---- the fuzzer's changes of the messages from 1 to 0 ---- */

static struct model_item **queue(struct world *world)
{
	return &world->model.ep[MODEL_HOSTILE].control[MODEL_VICTIM];
}

static void push(struct world *world, const void *msg, uint32_t len)
{
	struct model_item *it = model_item_add(queue(world), MODEL_CONTROL, MODEL_VICTIM);

	it->len = len;
	it->msg = malloc(len + !len);
	memcpy(it->msg, msg, len);
}

static void drop_first(struct world *world)
{
	struct model_item *it = *queue(world);

	DL_DELETE(*queue(world), it);
	if (it->eager)
		world->model.ep[MODEL_HOSTILE].eager_out--;
	model_item_free(it);
}

static void overwrite(struct input *in, struct model_item *it)
{
	uint32_t at = input_byte(in), value = input_number(in);
	size_t n = sizeof(value);

	at = at % it->len & ~3u;
	if (n > it->len - at)
		n = it->len - at;
	memcpy(it->msg + at, &value, n);
}

/* Gives the message another length, and exactly as much memory, so that the sanitizer sees a read
 * beyond the end. */
static void resize(struct input *in, struct model_item *it)
{
	uint32_t len = input_byte(in);
	uint8_t *msg = calloc(1, len + !len);

	memcpy(msg, it->msg, len < it->len ? len : it->len);
	free(it->msg);
	it->msg = msg;
	it->len = len;
}

static void tamper(struct input *in, struct world *world, unsigned how)
{
	struct model_item *it = *queue(world);

	if (!it || !it->len)
		return;
	switch (how % 8) {
	case 0:
		drop_first(world);
		break;
	case 1:
		push(world, it->msg, it->len);
		break;
	case 2:
		DL_DELETE(*queue(world), it);
		DL_APPEND(*queue(world), it);
		break;
	case 3:
		resize(in, it);
		break;
	case 4:
		it->msg[it->len > 1] = input_byte(in); /* flags */
		break;
	default:
		overwrite(in, it);
	}
}

/* Returns a handle that is in use, or any number. */
static tq_le32 handle(struct input *in, const struct tq_handles *handles)
{
	uint32_t b = input_byte(in), i, n;

	if (b >= 250 || !handles->used)
		return tq_put32(input_number(in));
	n = b % handles->used;
	for (i = 0; i < handles->room; i++) {
		if (handles->slots[i].object && !n--)
			break;
	}
	return tq_put32(handles->slots[i].gen << TQ_HANDLE_INDEX_BITS | i);
}

/* Chooses the place at which the hostile endpoint says that its data are. */
static void remote(struct input *in, const struct model_ep *ep, tq_le64 *addr, tq_le32 *rkey)
{
	const struct model_reg *reg = ep->regs;

	if (reg && input_below(in, 4)) {
		*addr = tq_put64((uintptr_t)reg->addr);
		*rkey = tq_put32(reg->reg.rkey);
	} else {
		*addr = tq_put64(input_long(in));
		*rkey = tq_put32(input_number(in));
	}
}

/* Chooses match bits: those of the users' operations, or others. */
static tq_le64 match_bits(struct input *in)
{
	uint8_t b = input_byte(in);

	return tq_put64(entries_bits(b % 16) ^ (b >= 192 ? input_long(in) << b % 64 : 0));
}

static struct tq_msg_env envelope(struct input *in, const struct world *world)
{
	uint8_t b = input_byte(in), c = input_byte(in);
	uint32_t header_len = world->prog.bits ? ENTRIES_HEADER : 0;

	return (struct tq_msg_env){
		.ctx = tq_put32(b & 0x40 ? input_number(in) : WORLD_CTX_ID),
		.source = tq_put32(b & 0x80 ? input_number(in) : MODEL_HOSTILE),
		.tag = world->prog.bits
			       ? match_bits(in)
			       : tq_put64(b & 0x20 ? input_long(in) : (uint32_t)tags[b % 4]),
		.cseq = tq_put32(input_number(in)),
		.seq = tq_put32(input_number(in)),
		.ask = b & 0x10 ? handle(in, &world->model.ep[MODEL_HOSTILE].core.tx_tuples)
				: tq_put32(0),
		.mask_life = tq_put16((uint16_t)(c % 64 < 60 ? c % 4 : input_number(in))),
		.header_len = tq_put16((uint16_t)(c < 224 ? header_len : input_number(in))),
	};
}

#define DATA_MAX 80u

union message {
	struct tq_msg_hdr hdr;
	struct tq_msg_eager eager;
	struct tq_msg_rts rts;
	struct tq_msg_switch sw;
	struct tq_msg_held held;
	struct tq_msg_recalled recalled;
	struct tq_msg_notice notice;
	struct tq_msg_data data;
	struct tq_msg_written written;
	struct tq_msg_srqn srqn;
	struct tq_msg_refuse refuse;
	struct tq_msg_recall recall;
	struct tq_msg_answer answer;
	struct tq_msg_cts cts;
	struct tq_msg_cts_held cts_held;
	struct tq_msg_mask mask;
	uint8_t bytes[TQ_MSG_MAX + DATA_MAX];
};

/* Forges a message of 1 as the sender of a tuple. Returns its length. */
static uint32_t forge_as_sender(struct input *in, const struct world *world, union message *m)
{
	const struct model_ep *here = &world->model.ep[MODEL_VICTIM],
			      *there = &world->model.ep[MODEL_HOSTILE];

	switch (m->hdr.type) {
	case TQ_MSG_EAGER:
		m->eager.env = envelope(in, world);
		/* The first byte of the user's header decides what the users do. */
		m->bytes[sizeof(m->eager)] = input_byte(in);
		return (uint32_t)sizeof(m->eager) + input_below(in, DATA_MAX);
	case TQ_MSG_RTS:
		m->rts.env = envelope(in, world);
		m->rts.length = tq_put64(input_long(in));
		remote(in, there, &m->rts.addr, &m->rts.rkey);
		m->rts.send_req = handle(in, &there->core.send_reqs);
		m->rts.header[0] = input_byte(in);
		return TQ_MSG_RTS_LEN(tq_get16(m->rts.env.header_len) % (TQ_HEADER_MAX + 1));
	case TQ_MSG_SWITCH:
		m->sw.rx_tuple = handle(in, &here->core.rx_tuples);
		m->sw.seq = tq_put32(input_number(in));
		return sizeof(m->sw);
	case TQ_MSG_HELD:
		m->held.rx_tuple = handle(in, &here->core.rx_tuples);
		m->held.seq = tq_put32(input_number(in));
		m->held.cseq = tq_put32(input_number(in));
		m->held.length = tq_put64(input_long(in));
		m->held.tag = world->prog.bits ? match_bits(in)
					       : tq_put64((uint32_t)tags[input_byte(in) % 4]);
		m->held.header_len = tq_put16(world->prog.bits ? ENTRIES_HEADER : 0);
		m->held.header[0] = input_byte(in);
		return TQ_MSG_HELD_LEN(tq_get16(m->held.header_len));
	case TQ_MSG_RECALLED:
		m->recalled.rx_tuple = handle(in, &here->core.rx_tuples);
		m->recalled.held = tq_put32(input_number(in));
		m->recalled.delivered = tq_put32(input_number(in));
		m->recalled.next = tq_put32(input_number(in));
		return sizeof(m->recalled);
	case TQ_MSG_NOTICE:
		m->notice.rx_tuple = handle(in, &here->core.rx_tuples);
		m->notice.seq = tq_put32(input_number(in));
		return sizeof(m->notice);
	case TQ_MSG_DATA:
		m->data.recv_req = handle(in, &here->core.recv_reqs);
		m->data.offset = tq_put64(input_long(in));
		return (uint32_t)sizeof(m->data) + input_below(in, DATA_MAX);
	case TQ_MSG_WRITTEN:
		m->written.recv_req = handle(in, &here->core.recv_reqs);
		m->written.failed = tq_put32(input_number(in));
		return sizeof(m->written);
	}
	return 0;
}

/* Forges a message of 1 as the receiver of a tuple. Returns its length. */
static uint32_t forge_as_receiver(struct input *in, const struct world *world, union message *m)
{
	const struct model_ep *here = &world->model.ep[MODEL_VICTIM],
			      *there = &world->model.ep[MODEL_HOSTILE];

	switch (m->hdr.type) {
	case TQ_MSG_MASK:
		m->mask.ctx = tq_put32(WORLD_CTX_ID);
		m->mask.life = tq_put16(input_byte(in));
		m->mask.mask = match_bits(in);
		return sizeof(m->mask);
	case TQ_MSG_SRQN:
		m->srqn.tx_tuple = handle(in, &here->core.tx_tuples);
		m->srqn.rx_tuple = handle(in, &there->core.rx_tuples);
		m->srqn.srqn = tq_put32(input_number(in));
		m->srqn.max_len = tq_put64(input_long(in));
		return sizeof(m->srqn);
	case TQ_MSG_REFUSE:
		m->refuse.tx_tuple = handle(in, &here->core.tx_tuples);
		m->refuse.after = tq_put32(input_number(in));
		return sizeof(m->refuse);
	case TQ_MSG_RECALL:
		m->recall.tx_tuple = handle(in, &here->core.tx_tuples);
		m->recall.rx_tuple = handle(in, &there->core.rx_tuples);
		m->recall.position = tq_put32(input_number(in));
		m->recall.after = tq_put32(input_number(in));
		return sizeof(m->recall);
	case TQ_MSG_FIN:
	case TQ_MSG_CTS_DIRECT:
		m->answer.send_req = handle(in, &here->core.send_reqs);
		return sizeof(m->answer);
	case TQ_MSG_CTS:
	case TQ_MSG_CTS_PIECES:
		m->cts.send_req = handle(in, &here->core.send_reqs);
		m->cts.recv_req = handle(in, &there->core.recv_reqs);
		m->cts.length = tq_put64(input_long(in));
		remote(in, there, &m->cts.addr, &m->cts.rkey);
		return sizeof(m->cts);
	case TQ_MSG_CTS_HELD:
		m->cts_held.tx_tuple = handle(in, &here->core.tx_tuples);
		m->cts_held.seq = tq_put32(input_number(in));
		m->cts_held.recv_req = handle(in, &there->core.recv_reqs);
		m->cts_held.length = tq_put64(input_long(in));
		return sizeof(m->cts_held);
	}
	return 0;
}

static void forge(struct input *in, struct world *world, unsigned what)
{
	union message m = {.hdr.type = (uint8_t)(1 + what % (TQ_MSG_TYPES - 1))};
	uint32_t len;

	m.hdr.flags = input_byte(in);
	len = forge_as_sender(in, world, &m);
	if (!len)
		len = forge_as_receiver(in, world, &m);
	if (!len) { /* any bytes */
		len = 1 + input_below(in, sizeof(m));
		input_bytes(in, &m, len);
	}
	if (!world->model.down[MODEL_HOSTILE][MODEL_VICTIM])
		push(world, &m, len);
}

/* Sends a direct message to a tuple queue that was offered to 1. */
static void stray(struct input *in, struct world *world)
{
	unsigned n = input_byte(in);
	uint64_t len = input_number(in) % (1 << 20);

	for (uint32_t i = 0; i < world->model.nsrqs; i++) {
		struct tq_srq *srq = world->model.srqs[(i + n) % world->model.nsrqs];
		const struct tq_recv_req *recv = srq->recvs ? srq->recvs->token : NULL;

		if (srq->ep == MODEL_VICTIM && srq->state == MODEL_SRQ_USED && recv &&
		    recv->rx_tuple->pair->rank == MODEL_HOSTILE &&
		    len <= world->model.ep[MODEL_VICTIM].limits.max_direct) {
			hca_stray(&world->model, MODEL_HOSTILE, srq, len);
			return;
		}
	}
}

/* ---- a run ---- */

static void step(struct input *in, struct world *world)
{
	uint8_t b = input_byte(in);
	uint16_t acts[ACTS];
	int n;

	switch (b >> 5) {
	case 0:
	case 1:
	case 2:
	case 3:
		n = world_actions(world, acts);
		if (n)
			world_act(world, acts[(b & 31) % n], b >> 5 == 3);
		break;
	case 4:
		do_op(in, world, b & 31);
		break;
	case 5:
		forge(in, world, b & 31);
		break;
	case 6:
		tamper(in, world, b & 31);
		break;
	default:
		switch (b & 7) {
		case 0:
			hca_break(&world->model, MODEL_VICTIM, MODEL_HOSTILE);
			world_broken(world, MODEL_VICTIM, MODEL_HOSTILE);
			break;
		case 1:
			stray(in, world);
			break;
		default:
			world_act(world, ACT_POLL + (b & 31) % 3, b & 8);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct world *world = calloc(1, sizeof(*world));
	uint8_t seed = input_byte(&in);

	sim_aborts = true;
	sim_tracing = getenv("TRACE") != NULL;
	sim_seed(&world->rng, seed);
	choose_network(&in, &world->model.conf);
	choose_params(&in, seed, world);
	world->prog.nctx = 1;
	world->prog.bits = input_below(&in, 2);
	world_start(world);
	while (in.left)
		step(&in, world);
	world_finish(world);
	free(world);
	return 0;
}
