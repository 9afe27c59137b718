/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole endpoint of libtupleq, on verbs that the fuzzer controls (verbs.h): datagrams of the
 * connection exchange and published addresses, messages on the control channel with their credits,
 * direct messages, completions and failures, between the user's calls. Three processes talk to the
 * endpoint: two peers on one node, and one that isn't a peer.
 *
 * Each request ends once, no request ends with an error that no sentence in the log explains, and
 * closing the endpoint comes to an end and leaves no object of the device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <tupleq/match.h>
#include <tupleq/tupleq.h>
#include <unistd.h>

#include "../expect.h"
#include "base/params.h"
#include "input.h"
#include "peers.h"
#include "verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMED      2 /* the number of processes that are peers: the first ones */
#define OPS        200
#define MRS        100
#define HOLD_LANES 2

/* A request of the user. The buffer is exactly as long as the request says, and is freed when the
 * request has ended. */
struct op {
	bool started, ended, is_recv;
	void *mem;
	struct tq_req *req;
	struct tq_msg *msg;
};

static struct run {
	struct tq_ep *ep;
	struct tq_peer *peers[NAMED];
	struct tq_ctx *ctx, *bits;
	char stored[4096]; /* where data without an entry go */
	struct op ops[OPS], last[NAMED];
	unsigned nops;
	unsigned complaints; /* sentences in the log */
	bool failed;         /* a request has ended with an error */
	struct tq_mr *mrs[MRS];
	unsigned nmrs;
	bool rings; /* the peers share memory with the endpoint */
} run;

/* ---- callbacks ---- */

/* Registers memory. Registrations outlast requests, so that the sanitizer sees a write to a buffer
 * that was given back. */
static struct tq_mr *cache_get(void *arg, void *addr, size_t len, bool write, void **cookie)
{
	struct tq_mr *mr;

	(void)arg;
	*cookie = NULL;
	if (run.nmrs == MRS || tq_mr_register(run.ep, addr, len, write, &mr))
		return NULL;
	run.mrs[run.nmrs++] = mr;
	return mr;
}

static void cache_put(void *arg, void *cookie)
{
	(void)arg;
	(void)cookie;
}

static void complain(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	t_true(*text, "an empty sentence");
	run.complaints += level == TQ_LOG_ERROR || level == TQ_LOG_DEBUG;
	if (getenv("TRACE"))
		printf("log: %s\n", text);
}

static void op_end(struct op *op, int error)
{
	t_true(op->started && !op->ended, "a request ended twice");
	run.failed |= error && error != -EMSGSIZE && error != -ECANCELED;
	op->ended = true;
	op->req = NULL;
	free(op->mem);
	op->mem = NULL;
}

static void completed(void *user, const struct tq_status *status)
{
	op_end(user, status->error);
}

/* Adds a peer by its published address, or by a changed one. */
static void add_peer(struct input *in)
{
	struct tq_address a = peers_address(input_byte(in));
	uint32_t value, at = input_byte(in) % sizeof(a) & ~3u, len = sizeof(a);
	struct tq_peer *peer;
	uint8_t how = input_byte(in);

	value = input_number(in);
	if (how & 1)
		memcpy((uint8_t *)&a + at, &value, sizeof(value));
	if (how & 2)
		len = input_byte(in) % len;
	tq_peer_add(run.ep, &a, len, "another", &peer);
}

/* ---- the user ---- */

static struct op *op_new(struct input *in, struct tq_buf *buf, bool is_recv)
{
	static const uint32_t lengths[] = {8, 0, 1, 64, 500, 3000, 5000, 65000};
	struct op *op = run.nops < OPS ? &run.ops[run.nops++] : NULL;

	if (!op)
		return NULL;
	*buf = (struct tq_buf){.len = lengths[input_byte(in) % 8]};
	op->mem = buf->addr = calloc(1, buf->len + !buf->len);
	op->started = true;
	op->is_recv = is_recv;
	return op;
}

static void started(struct op *op, int rc, const struct tq_status *status)
{
	t_true(rc == 0 || rc == 1 || rc == -EIO, "a request is refused");
	if (rc)
		op_end(op, rc < 0 ? rc : status->error);
}

static void do_send(struct input *in, unsigned how)
{
	struct tq_status sent = {0};
	struct tq_buf buf;
	struct op *op = op_new(in, &buf, false);
	unsigned flags = how & 16 ? TQ_SEND_SYNC : 0;

	if (op)
		started(op, tq_send(run.ctx, how % NAMED, how / 4 % 4, &buf, flags, op, &op->req),
			&sent);
}

static void do_recv(struct input *in, unsigned how)
{
	struct tq_status status = {0};
	struct tq_buf buf;
	struct op *op = op_new(in, &buf, true);
	int rank = how % 4 == 3 ? TQ_ANY_SOURCE : (int)(how % NAMED);
	int tag = how & 16 ? TQ_ANY_TAG : (int)(how / 4 % 4);

	if (op)
		started(op, tq_recv(run.ctx, rank, tag, &buf, op, &op->req, &status), &status);
}

static void do_probe(struct input *in, unsigned how)
{
	int rank = how % 4 == 3 ? TQ_ANY_SOURCE : (int)(how % NAMED), tag = (int)(how / 4 % 4);
	struct tq_status status = {0};
	struct tq_msg *msg = NULL;
	struct tq_buf buf;
	struct op *op;

	if (how & 16) {
		tq_probe(run.ctx, rank, tag, &status);
		return;
	}
	if (run.nops == OPS || tq_mprobe(run.ctx, rank, tag, &status, &msg) != 1)
		return;
	op = op_new(in, &buf, true);
	started(op, tq_mrecv(msg, &buf, op, &op->req, &status), &status);
}

/* Completes a send: well, or with an error of the connection or of the message. */
static void complete(unsigned how)
{
	enum ibv_wc_status error = how & 16 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_RETRY_EXC_ERR;

	fake_complete(how / 2, how % 16 == 15 ? error : IBV_WC_SUCCESS);
}

static void do_cancel(struct op *op)
{
	if (op->is_recv && op->req)
		tq_cancel(op->req);
}

static void cancel_or_break(uint8_t what)
{
	if (what >= 254)
		fake_break(what & 1);
	else
		do_cancel(&run.ops[run.nops ? what % run.nops : 0]);
}

static void progress(unsigned n)
{
	while (n--)
		tq_progress(run.ep);
}

/* ---- match bits ---- */

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	(void)arg;
	t_true(take->user == entry && envelope->header, "an entry isn't filled in");
	return envelope->bits & peers_bits(4) ? TQ_PASS : TQ_TAKE;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	(void)arg;
	take->buf = (struct tq_buf){.addr = run.stored, .len = sizeof(run.stored)};
	take->user = run.stored;
	return (enum tq_disposition)(envelope->bits % 3);
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	(void)arg;
	if (user == run.stored)
		return;
	t_true(arrival->error || arrival->envelope.header, "a message has no header");
	op_end(user, arrival->error);
}

static const struct tq_match_ops match_ops = {match, unexpected, done};

static void do_send_bits(struct input *in, unsigned how)
{
	static const char header[PEERS_HEADER];
	struct tq_status sent = {0};
	struct tq_buf buf;
	struct op *op = op_new(in, &buf, false);

	if (op)
		started(op,
			tq_send_bits(run.bits, how % NAMED, peers_bits(how / 4 % 4), header, &buf,
				     how & 16 ? TQ_SEND_MATCHED : 0, op, &op->req),
			&sent);
}

static void do_append(struct input *in, unsigned how)
{
	struct tq_buf buf;
	struct op *op = op_new(in, &buf, true);
	int rc;

	if (!op)
		return;
	rc = tq_entry_append(run.bits, how % 32 == 30 ? TQ_ANY_SOURCE : (int)(how % NAMED),
			     peers_bits(how / 4 % 4), how & 16 ? peers_bits(0x90) : 0, &buf,
			     how & 8 ? 0 : TQ_ENTRY_QUEUE, op, NULL);
	t_true(rc >= 0 || rc == -EIO, "an entry is refused");
	if (rc < 0)
		op_end(op, rc);
}

/* ---- a run ---- */

/* Takes a step of one of the rarer kinds, which share a number. */
static void rare_step(struct input *in, unsigned how)
{
	switch (how % 8) {
	case 0:
		peers_bye(in, how / 8 + (input_byte(in) & 4));
		break;
	case 1:
		peers_any(in);
		break;
	case 2:
		add_peer(in);
		break;
	case 3:
		cancel_or_break(input_byte(in));
		break;
	case 4:
	case 5:
		peers_direct(in);
		break;
	case 6:
		if (run.rings) {
			peers_scribble(in);
			break;
		}
		do_probe(in, input_byte(in) & 31);
		break;
	default:
		do_probe(in, input_byte(in) & 31);
	}
}

static void step(struct input *in)
{
	uint8_t decision = input_byte(in);
	unsigned how = decision & 31;

	switch (decision >> 5) {
	case 0:
		progress(1 + how % 8);
		fake_clock_add(how >= 8 ? UINT64_C(1000000) << how % 12 : 0);
		break;
	case 1:
		peers_message(in, how);
		break;
	case 2:
		peers_request(in, how);
		break;
	case 3:
		peers_reply(in, how);
		break;
	case 4:
		if (how % 4 < NAMED)
			do_send(in, how);
		else
			do_send_bits(in, how);
		break;
	case 5:
		if (how % 4 == 2)
			do_append(in, how);
		else
			do_recv(in, how);
		break;
	case 6:
		complete(how);
		break;
	default:
		rare_step(in, how);
	}
	if (decision & 1)
		progress(2);
}

static void open_endpoint(struct input *in)
{
	static char dir[] = "/tmp", name[] = "the one under test";
	const struct tq_job job = {
		.key = 1,
		.dir = getenv("TMPDIR") ? getenv("TMPDIR") : dir,
		.name = name,
		.log = complain,
		.complete = completed,
	};
	static const struct tq_mr_cache cache = {.get = cache_get, .put = cache_put};
	struct tq_params *params = tq_params_new();
	uint8_t b = input_byte(in);
	size_t len;

	params->service_thread = 0;
	params->keepalive = 1;
	params->connect_timeout = 1;
	params->promote_after = 0;
	params->wild_backoff = 0;
	params->small_depth = params->large_depth = 32;
	params->cq_depth = 512;
	params->hold_lanes = HOLD_LANES;
	params->credits = b & 2 ? 2 : 8;
	params->null_mr = !(b & 4);
	params->sink = 65536;
	params->protocol = b / 8 % 4;
	params->rendezvous = b / 32 % 2;
	params->eager_limit = params->eager_max = b & 64 ? 128 : 4096;
	params->copy_pool = 262144;
	run.rings = b & 128;
	params->intranode = run.rings ? TQ_INTRANODE_SHM : TQ_INTRANODE_HCA;
	params->rings = NAMED;
	params->ring_size = 4096;
	t_true(!tq_open(params, &job, &cache, &run.ep), "the endpoint can't be opened");
	tq_params_free(params);
	peers_start(tq_address(run.ep, &len), run.rings);
	for (unsigned i = 0; i < NAMED; i++) {
		struct tq_address a = peers_address(i);

		t_true(!tq_peer_add(run.ep, &a, sizeof(a), i ? "peer 1" : "peer 0", &run.peers[i]),
		       "a peer can't be added");
	}
	t_true(!tq_ctx_add(run.ep, PEERS_CTX, run.peers, NAMED, 0, 0, &run.ctx),
	       "the context can't be added");
	t_true(!tq_ctx_add_bits(run.ep, PEERS_BITS_CTX, run.peers, NAMED, 0, 0, PEERS_HEADER,
				&match_ops, NULL, &run.bits),
	       "the context with match bits can't be added");
}

/* Checks that a peer gets no more lanes than the limit, however many it requests. */
static void check_targets(void)
{
	const struct tq_counter_desc *desc;
	unsigned i;

	for (i = 0; (desc = tq_counter_desc(i)) && strcmp(desc->name, "targets"); i++)
		;
	t_true(desc && tq_counter_high(run.ep, i) <= NAMED * (2 + 2 * HOLD_LANES),
	       "peers have more target QPs than they can need");
}

static void close_endpoint(void)
{
	static const struct tq_buf empty;

	check_targets();
	/* All operations fail that are under way or tried now, and requests without an answer time
	 * out. */
	fake_cut();
	for (unsigned i = 0; i < run.nops; i++)
		do_cancel(&run.ops[i]);
	/* A last message to each peer finds out that the peer is gone, sooner than keepalive. */
	for (unsigned i = 0; i < NAMED; i++) {
		struct op *last = &run.last[i];

		last->started = true;
		tq_send(run.ctx, (int)i, 0, &empty, 0, last, &last->req);
	}
	tq_ctx_remove(run.ctx);
	tq_ctx_remove(run.bits);
	for (unsigned i = 0; i < NAMED; i++)
		tq_peer_remove(run.peers[i]);
	for (unsigned i = 0; i < run.nmrs; i++)
		tq_mr_deregister(run.mrs[i]);
	tq_close(run.ep);
	peers_end();
	for (unsigned i = 0; i < run.nops; i++) {
		t_true(run.ops[i].ended || run.ops[i].is_recv, "a send has not ended");
		free(run.ops[i].mem);
	}
	fake_nothing_left();
	t_true(!run.failed || run.complaints,
	       "a request ended with an error that no sentence explains");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	memset(&run, 0, sizeof(run));
	fake_start(peers_hear);
	open_endpoint(&in);
	while (in.left)
		step(&in);
	close_endpoint();
	return 0;
}
