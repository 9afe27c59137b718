/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint's messages to its peers, and the peers' messages to it. */
#include "peers.h"

#include <stdlib.h>
#include <unistd.h>

#include "net/adapter/ring.h"
#include "net/peers/oob.h"
#include "verbs.h"

#define PEERS     3
#define NONCE     UINT64_C(0x1000)
#define REQUESTS  8
#define SMALL_BUF 256
#define RING      32768u /* bytes of a ring, which carries the longest messages */
#define LARGE_BUF 8192u

static struct {
	struct tq_address own; /* the endpoint's address */
	struct {
		uint32_t conn;          /* the peer's number at the endpoint */
		uint64_t txid;          /* the id of the peer's last request */
		struct tq_ring_out out; /* its ring in the endpoint's inbox; ring NULL: none */
		uint32_t number;        /* of that ring */
	} from[PEERS];
	struct tq_oob_req asked[REQUESTS]; /* requests of the endpoint */
	unsigned nasked;
	/* Shared memory: the endpoint's inbox, NULL: none; and one inbox for all peers. */
	struct tq_rings *rings[2];
	size_t len[2];
	uint64_t inbox; /* the name of the peers' inbox */
} peers;

/* The memory of peer 0 that the endpoint may read: its nonce, and some data. */
static const uint64_t first_nonce = NONCE;
static uint8_t readable[128 << 10];

uint64_t peers_bits(uint8_t b)
{
	static const uint8_t places[] = {0, 9, 18, 27, 33, 42, 51, 63};
	uint64_t bits = 0;

	for (int i = 0; i < 8; i++)
		bits |= (uint64_t)(b >> i & 1) << places[i];
	return bits;
}

void peers_start(const void *own, bool rings)
{
	void *mem[2];

	memset(&peers, 0, sizeof(peers));
	memcpy(&peers.own, own, sizeof(peers.own));
	if (!rings)
		return;
	peers.len[1] = tq_rings_len(PEERS, RING);
	if (tq_segment_attach(tq_get64(peers.own.inbox), &peers.len[0], &mem[0]) ||
	    tq_segment_create(peers.len[1], &peers.inbox, &mem[1]))
		abort();
	peers.rings[0] = mem[0];
	peers.rings[1] = mem[1];
	peers.rings[1]->pid = (uint32_t)getpid();
	peers.rings[1]->proof = (uintptr_t)&first_nonce;
}

void peers_end(void)
{
	for (int i = 0; i < 2 && peers.rings[i]; i++)
		tq_segment_detach(peers.rings[i]);
}

static int index_of(tq_le64 nonce)
{
	uint64_t i = tq_get64(nonce) - NONCE;

	return i < PEERS ? (int)i : -1;
}

/* Takes the ring that the endpoint has given to a peer. */
static void hear_reply(int peer, const struct tq_oob_rep *rep)
{
	uint32_t number = tq_get32(rep->ring) - 1, size = tq_get32(rep->ring_size);

	peers.from[peer].conn = tq_get32(rep->conn);
	if (!tq_get32(rep->ring) || peers.from[peer].out.ring)
		return;
	if (!peers.rings[0] || tq_rings_len(number + 1, size) > peers.len[0])
		abort();
	peers.from[peer].number = number;
	peers.from[peer].out = (struct tq_ring_out){
		.ring = tq_rings_at(peers.rings[0], number, size),
		.size = size,
	};
}

void peers_hear(const uint8_t *bytes, uint32_t len)
{
	const struct tq_oob_hdr *hdr = (const void *)bytes;
	int to = index_of(hdr->to);

	if (hdr->type == TQ_OOB_REQ && len == sizeof(struct tq_oob_req))
		memcpy(&peers.asked[peers.nasked++ % REQUESTS], bytes, len);
	else if (hdr->type == TQ_OOB_REP && to >= 0)
		hear_reply(to, (const void *)bytes);
}

/* ---- the connection exchange ---- */

struct tq_address peers_address(unsigned peer)
{
	struct tq_address a = peers.own;

	a.nonce = tq_put64(NONCE + peer);
	a.ud_qpn = tq_put32(0x200 + peer);
	a.inbox = tq_put64(peers.inbox);
	if (peers.rings[0])
		return a;
	a.gid[15] = 2;
	a.lid = tq_put16(2);
	return a;
}

static struct tq_oob_hdr header(unsigned peer, enum tq_oob_type type, uint64_t txid)
{
	return (struct tq_oob_hdr){
		.magic = tq_put32(TQ_ADDRESS_MAGIC),
		.version = tq_put16(TQ_ADDRESS_VERSION),
		.type = (uint8_t)type,
		.to = peers.own.nonce,
		.from = tq_put64(NONCE + peer),
		.txid = tq_put64(txid),
	};
}

/* Sends a datagram with some bytes changed, and perhaps not all of it. */
static void send_datagram(struct input *in, void *bytes, uint32_t len)
{
	uint8_t changes = input_byte(in);

	for (unsigned i = 0; i < changes / 64; i++) {
		uint32_t value, at = input_byte(in) % len & ~3u;

		value = input_number(in);
		memcpy((uint8_t *)bytes + at, &value, sizeof(value));
	}
	if (changes % 16 == 15)
		len = input_byte(in) % len;
	fake_datagram(bytes, len);
}

void peers_request(struct input *in, unsigned how)
{
	unsigned peer = how % PEERS;
	struct tq_oob_req req = {
		.hdr = header(peer, TQ_OOB_REQ, peers.from[peer].txid + (how & 4 ? 0 : 1)),
		.address = peers_address(peer),
		.kind = (uint8_t)(how / 8 % 3),
		.mtu = IBV_MTU_1024,
		.rd_atomic = 4,
		.ring = peers.rings[0] != NULL,
		.ini_qpn = tq_put32(0x300 + peer),
		.psn = tq_put32(17),
		.tgt_qpn = tq_put32(input_byte(in) % 4 ? 0 : 0x400 + input_byte(in)),
	};

	peers.from[peer].txid = tq_get64(req.hdr.txid);
	send_datagram(in, &req, sizeof(req));
}

void peers_reply(struct input *in, unsigned how)
{
	const struct tq_oob_req *req;
	struct tq_oob_rep rep;
	int peer;

	if (!peers.nasked)
		return;
	req = &peers.asked[(peers.nasked - 1 - how / 4 % 8 % peers.nasked) % REQUESTS];
	peer = index_of(req->hdr.to);
	if (peer < 0)
		return;
	rep = (struct tq_oob_rep){
		.hdr = header((unsigned)peer, TQ_OOB_REP, tq_get64(req->hdr.txid)),
		.tgt_qpn = tq_get32(req->tgt_qpn) ? req->tgt_qpn : tq_put32(0x500),
		.rd_atomic = 4,
		.conn = tq_put32(1u << 20),
		.srqn = {tq_put32(0x600), tq_put32(0x601)},
		.size = {tq_put32(SMALL_BUF), tq_put32(LARGE_BUF)},
		.credits = {tq_put32(8), tq_put32(4)},
	};
	if (peers.rings[1]) {
		rep.credits[0] = rep.credits[1] = tq_put32(0);
		rep.ring = tq_put32((uint32_t)peer + 1);
		rep.ring_size = tq_put32(RING);
	}
	rep.hdr.status = how % 4 ? TQ_OOB_OK : input_byte(in) % 8;
	if (rep.hdr.status == TQ_OOB_ERROR)
		rep.error = tq_put32(input_number(in));
	send_datagram(in, &rep, sizeof(rep));
}

void peers_bye(struct input *in, unsigned how)
{
	struct tq_oob_hdr h = header(how % PEERS, how & 4 ? TQ_OOB_BYE_ACK : TQ_OOB_BYE, 0);

	send_datagram(in, &h, sizeof(h));
}

void peers_any(struct input *in)
{
	uint8_t bytes[216], len = input_byte(in) % sizeof(bytes);

	input_bytes(in, bytes, len);
	fake_datagram(bytes, len);
}

/* ---- the control channel ---- */

/* Writes a message of a peer to its ring. */
static void write_to_ring(unsigned peer, const void *msg, uint32_t len)
{
	struct tq_ring_out *out = &peers.from[peer].out;
	void *room = tq_ring_room(out, len);

	if (!room)
		return;
	memcpy(room, msg, len);
	tq_ring_send(out, len);
	atomic_fetch_or(&peers.rings[0]->ready[peers.from[peer].number / 64],
			UINT64_C(1) << peers.from[peer].number % 64);
}

void peers_scribble(struct input *in)
{
	unsigned inbox = input_byte(in) % 2;
	uint8_t where = input_byte(in);
	uint32_t at, value = input_number(in);

	if (!peers.rings[inbox])
		return;
	/* The first words of the inbox or of a ring, or a place where messages are. */
	at = where < 64 ? where : where * 97u;
	if (where % 4 == 3)
		at = (uint32_t)(2 * TQ_LINE + where / 64 * (2 * TQ_LINE + RING)) / 4;
	if (4 * (size_t)at + 4 <= peers.len[inbox])
		memcpy((char *)peers.rings[inbox] + 4 * (size_t)at, &value, sizeof(value));
}

/* Returns a handle in the form that the endpoint gives out, or any number. */
static tq_le32 word(struct input *in)
{
	uint8_t b = input_byte(in);

	if (b < 128)
		return tq_put32((uint32_t)(1 + b / 32) << 20 | b % 32);
	return tq_put32(b == 255 ? input_number(in) : b - 128u);
}

static uint32_t length_of(uint8_t type)
{
	static const uint8_t lengths[TQ_MSG_TYPES] = {
		[TQ_MSG_EAGER] = sizeof(struct tq_msg_eager),
		[TQ_MSG_RTS] = TQ_MSG_RTS_LEN(0),
		[TQ_MSG_SWITCH] = sizeof(struct tq_msg_switch),
		[TQ_MSG_HELD] = TQ_MSG_HELD_LEN(0),
		[TQ_MSG_RECALLED] = sizeof(struct tq_msg_recalled),
		[TQ_MSG_NOTICE] = sizeof(struct tq_msg_notice),
		[TQ_MSG_DATA] = sizeof(struct tq_msg_data),
		[TQ_MSG_WRITTEN] = sizeof(struct tq_msg_written),
		[TQ_MSG_SRQN] = sizeof(struct tq_msg_srqn),
		[TQ_MSG_REFUSE] = sizeof(struct tq_msg_refuse),
		[TQ_MSG_RECALL] = sizeof(struct tq_msg_recall),
		[TQ_MSG_FIN] = sizeof(struct tq_msg_answer),
		[TQ_MSG_CTS] = sizeof(struct tq_msg_cts),
		[TQ_MSG_CTS_PIECES] = sizeof(struct tq_msg_cts),
		[TQ_MSG_CTS_DIRECT] = sizeof(struct tq_msg_answer),
		[TQ_MSG_CTS_HELD] = sizeof(struct tq_msg_cts_held),
		[TQ_MSG_CREDIT] = sizeof(struct tq_msg_hdr),
		[TQ_MSG_BACKPRESSURE] = sizeof(struct tq_msg_backpressure),
		[TQ_MSG_MASK] = sizeof(struct tq_msg_mask),
	};

	return type < TQ_MSG_TYPES ? lengths[type] : 8;
}

/* Has an RTS name memory that may be read. */
static void name_readable(tq_le64 *addr)
{
	*addr = tq_put64((uintptr_t)readable + tq_get64(*addr) % sizeof(readable));
}

/* Sends the first `len` bytes of a message, once or as often as the input says. */
static void send_message(struct input *in, uint8_t peer, uint8_t shape, const void *msg,
			 uint32_t len)
{
	for (unsigned n = shape & 16 ? input_byte(in) : 1; n; n--) {
		if (peers.from[peer].out.ring && !(shape & 64))
			write_to_ring(peer, msg, len);
		else
			fake_message(shape & 32 || len > SMALL_BUF, msg, len);
	}
}

void peers_message(struct input *in, unsigned how)
{
	uint8_t peer = (uint8_t)(how % PEERS), shape = input_byte(in);
	union {
		struct tq_msg_hdr hdr;
		struct tq_msg_eager eager;
		struct tq_msg_mask mask;
		struct tq_msg_held held;
		struct tq_msg_rts rts;
		tq_le32 words[512];
	} m = {0};
	uint32_t len, i = 2;

	m.hdr.type = input_byte(in) % (TQ_MSG_TYPES + 1);
	m.hdr.flags = shape & 1 ? input_byte(in) : 0;
	m.hdr.credits[0] = shape & 2 ? input_byte(in) : 0;
	m.hdr.credits[1] = shape & 2 ? input_byte(in) : 0;
	m.hdr.conn = shape & 4 ? word(in) : tq_put32(peers.from[peer].conn);
	len = length_of(m.hdr.type);
	if (tq_msg_has_envelope(m.hdr.type)) {
		bool bits = shape & 64;

		m.eager.env.ctx = tq_put32(bits ? PEERS_BITS_CTX : PEERS_CTX);
		m.eager.env.source = tq_put32(peer);
		m.eager.env.mask_life = tq_put16(input_byte(in) % 4);
		m.eager.env.header_len = tq_put16(shape & 128 ? input_byte(in)
						  : bits      ? PEERS_HEADER
							      : 0);
		m.eager.env.tag = tq_put64(bits ? peers_bits(input_byte(in)) : input_byte(in) % 4);
		m.eager.env.ask = word(in);
		len += tq_get16(m.eager.env.header_len);
		i = sizeof(m.eager) / 4;
	} else if (m.hdr.type == TQ_MSG_MASK) {
		m.mask.ctx = tq_put32(shape & 64 ? PEERS_CTX : PEERS_BITS_CTX);
		i = 3;
	}
	for (; i < len / 4 && i < 512; i++)
		m.words[i] = word(in);
	if (m.hdr.type == TQ_MSG_MASK)
		m.mask.mask = tq_put64(peers_bits((uint8_t)tq_get64(m.mask.mask)));
	if (m.hdr.type == TQ_MSG_HELD) {
		m.held.tag = tq_put64(shape & 64 ? peers_bits((uint8_t)tq_get64(m.held.tag))
						 : tq_get64(m.held.tag) % 4);
		m.held.header_len = tq_put16(shape & 64 ? PEERS_HEADER : 0);
		len += tq_get16(m.held.header_len);
	}
	if (m.hdr.type == TQ_MSG_RTS && m.hdr.flags & (TQ_RTS_LOCAL | TQ_RTS_RKEY))
		name_readable(&m.rts.addr);
	if (tq_msg_has_data(m.hdr.type))
		len += input_number(in) % 1024;
	if (shape & 8)
		len = input_byte(in);
	send_message(in, peer, shape, &m, len < sizeof(m) ? len : sizeof(m));
}

void peers_direct(struct input *in)
{
	uint32_t n = fake_srqs(), len = input_number(in) % 70000;
	tq_le64 bits = tq_put64(peers_bits((uint8_t)len));
	void *bytes;

	if (n <= TQ_CLASSES)
		return;
	bytes = calloc(1, len + sizeof(bits));
	memcpy(bytes, &bits, sizeof(bits));
	fake_message(TQ_CLASSES + input_byte(in) % (n - TQ_CLASSES), bytes, len);
	free(bytes);
}
