/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * captured.c - from messages to packets (IBA 9). The requester's process writes what both adapters
 * send.
 */
#include "captured.h"

#include "link.h"
#include "packet.h"
#include "traced.h"
#include "ud.h"

/* Opcodes of packets, without the transport (IBA table 38). */
enum {
	SEND_FIRST = 0x00,
	WRITE_FIRST = 0x06,
	READ_REQUEST = 0x0c,
	READ_RESPONSE_FIRST = 0x0d,
	READ_RESPONSE_MIDDLE = 0x0e,
	READ_RESPONSE_LAST = 0x0f,
	READ_RESPONSE_ONLY = 0x10,
	ACKNOWLEDGE = 0x11,
	ATOMIC_ACKNOWLEDGE = 0x12,
	CMP_SWAP = 0x13,
	FETCH_ADD = 0x14,
	SEND_LAST_INVALIDATE = 0x16,
	SEND_ONLY_INVALIDATE = 0x17,
};
/* Offsets from SEND_FIRST and WRITE_FIRST. */
enum { MIDDLE = 1, LAST = 2, ONLY = 4, WITH_IMM = 1 };

/* Syndromes of an AETH (IBA 9.7.5.2). */
#define SYNDROME_ACK 0x1fu /* without end-to-end credits */
#define SYNDROME_RNR 0x20u
#define SYNDROME_NAK 0x60u

/* The transport in an opcode, by the type of the requester's QP. */
static const uint8_t transport[] = {
	[IBV_QPT_RC] = 0x00,
	[IBV_QPT_UC] = 0x20,
	[IBV_QPT_UD] = 0x60,
	[IBV_QPT_XRC_SEND] = 0xa0,
};

/* The packets of a message in one direction. */
struct flow {
	struct shca_qp *qp; /* the requester */
	const struct shca_swqe *wqe;
	const struct shca_hca *from;
	struct shca_ud_dest path;
	uint32_t qpn; /* destination */
	uint16_t pkey;
	bool careful;        /* nobody has read the message's memory so far */
	uint32_t packets;    /* of the message */
	uint64_t begin, end; /* when the first byte leaves, and when the last one has left */
};

/* The packet in the making. Guarded by the capture's lock. */
static struct shca_packet packet;

/* ---------------------------------------------------------------- parts of a packet */

static void begin_packet(const struct flow *flow, unsigned opcode, uint32_t number, uint32_t length,
			 bool ends_request)
{
	const struct shca_qp *qp = flow->qp;
	bool reliable = qp->entry->type == IBV_QPT_RC || qp->entry->type == IBV_QPT_XRC_SEND;
	const struct shca_bth bth = {
		.opcode = (uint8_t)(transport[qp->entry->type] + opcode),
		.solicited = ends_request && (flow->wqe->flags & IBV_SEND_SOLICITED),
		.asks_ack = ends_request && reliable,
		.pkey = flow->pkey,
		.qpn = flow->qpn,
		.psn = atomic_load_explicit(&qp->psn, memory_order_relaxed) + number,
		.length = length,
	};

	shca_packet_begin(&packet, &bth);
}

static void end_packet(const struct flow *flow, uint32_t number)
{
	uint64_t at = flow->begin + (flow->end - flow->begin) * number / flow->packets;

	shca_packet_end(&packet, flow->from, &flow->path);
	shca_capture_add((unsigned)(flow->from - shca_self.fabric.hdr->hcas), at,
			 packet.bytes + packet.begin, packet.end - packet.begin);
}

static void put_run(const struct shca_run *run, uint64_t off, uint32_t len, bool careful)
{
	uint8_t *to = shca_packet_room(&packet, len);

	/* The packet of memory that isn't there has zeros; the message itself fails. */
	if (run->null ||
	    ((careful || run->on_demand) && shca_mem_populate(run->addr + off, len, false)))
		memset(to, 0, len);
	else
		memcpy(to, (const void *)(uintptr_t)(run->addr + off), len);
}

/* Adds bytes [off, off + len) of a list of runs. */
static void put_runs(const struct shca_run *run, uint64_t off, uint32_t len, bool careful)
{
	for (; len; run++) {
		uint64_t n;

		if (off >= run->len) {
			off -= run->len;
			continue;
		}
		n = run->len - off < len ? run->len - off : len;
		put_run(run, off, (uint32_t)n, careful);
		len -= (uint32_t)n;
		off = 0;
	}
}

/* Adds the number of the SRQ to a request of an XRC QP. */
static void put_xrceth(const struct flow *flow)
{
	if (flow->qp->entry->type == IBV_QPT_XRC_SEND)
		shca_packet_put32(&packet, flow->wqe->srqn & 0xffffff);
}

static void put_reth(const struct flow *flow)
{
	shca_packet_put64(&packet, flow->wqe->remote_addr);
	shca_packet_put32(&packet, flow->wqe->rkey);
	shca_packet_put32(&packet, flow->wqe->length);
}

static void put_aeth(const struct flow *flow, unsigned syndrome)
{
	shca_packet_put32(&packet, (uint32_t)syndrome << 24 | (flow->qp->captured & 0xffffff));
}

/* ---------------------------------------------------------------- messages as packets */

static bool has_imm(const struct shca_swqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static unsigned opcode_of(const struct shca_swqe *wqe, bool first, bool last)
{
	bool writes = wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned opcode = writes ? WRITE_FIRST : SEND_FIRST;

	if (!last)
		return opcode + (first ? 0 : MIDDLE);
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		return first ? SEND_ONLY_INVALIDATE : SEND_LAST_INVALIDATE;
	return opcode + (first ? ONLY : LAST) + (has_imm(wqe) ? WITH_IMM : 0);
}

static uint32_t mtu_of(const struct shca_qp *qp)
{
	return 128u << qp->entry->attr.path_mtu;
}

static uint32_t packets_of(const struct shca_qp *qp, uint64_t bytes)
{
	return bytes ? (uint32_t)((bytes - 1) / mtu_of(qp)) + 1 : 1;
}

/* Returns the bytes of data of a packet. */
static uint32_t data_of(const struct flow *flow, uint32_t number)
{
	uint32_t off = number * mtu_of(flow->qp), left = flow->wqe->length - off;

	return left < mtu_of(flow->qp) ? left : mtu_of(flow->qp);
}

/* Writes the first `sent` packets of a SEND or WRITE. */
static void write_sends(const struct flow *flow, uint32_t sent)
{
	const struct shca_swqe *wqe = flow->wqe;

	for (uint32_t i = 0; i < sent; i++) {
		bool first = i == 0, last = i + 1 == flow->packets;
		unsigned opcode = opcode_of(wqe, first, last);
		uint32_t bytes = data_of(flow, i);

		begin_packet(flow, opcode, i, bytes, last);
		put_xrceth(flow);
		if (first && opcode >= WRITE_FIRST && wqe->opcode != IBV_WR_SEND_WITH_INV)
			put_reth(flow);
		if (last && has_imm(wqe))
			shca_packet_put(&packet, &wqe->imm, sizeof(wqe->imm));
		if (last && wqe->opcode == IBV_WR_SEND_WITH_INV)
			shca_packet_put32(&packet, wqe->imm);
		put_runs(flow->qp->copy.src, (uint64_t)i * mtu_of(flow->qp), bytes, flow->careful);
		end_packet(flow, i);
	}
}

static void write_read_request(const struct flow *flow)
{
	begin_packet(flow, READ_REQUEST, 0, 0, true);
	put_xrceth(flow);
	put_reth(flow);
	end_packet(flow, 0);
}

static void write_atomic_request(const struct flow *flow)
{
	const struct shca_swqe *wqe = flow->wqe;
	bool swaps = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	begin_packet(flow, swaps ? CMP_SWAP : FETCH_ADD, 0, 0, true);
	put_xrceth(flow);
	shca_packet_put64(&packet, wqe->remote_addr);
	shca_packet_put32(&packet, wqe->rkey);
	shca_packet_put64(&packet, swaps ? wqe->swap : wqe->compare_add);
	shca_packet_put64(&packet, swaps ? wqe->compare_add : 0);
	end_packet(flow, 0);
}

static void write_read_responses(const struct flow *flow)
{
	for (uint32_t i = 0; i < flow->packets; i++) {
		bool first = i == 0, last = i + 1 == flow->packets;
		unsigned opcode = first ? (last ? READ_RESPONSE_ONLY : READ_RESPONSE_FIRST)
					: (last ? READ_RESPONSE_LAST : READ_RESPONSE_MIDDLE);
		uint32_t bytes = data_of(flow, i);

		begin_packet(flow, opcode, i, bytes, false);
		if (first || last)
			put_aeth(flow, SYNDROME_ACK);
		put_runs(flow->qp->copy.dst, (uint64_t)i * mtu_of(flow->qp), bytes, false);
		end_packet(flow, i);
	}
}

static void write_atomic_ack(const struct flow *flow)
{
	uint64_t old;

	begin_packet(flow, ATOMIC_ACKNOWLEDGE, 0, 0, false);
	put_aeth(flow, SYNDROME_ACK);
	put_runs(flow->qp->copy.dst, 0, sizeof(old), false);
	/* In memory the value has the order of this host. */
	packet.end -= (uint32_t)sizeof(old);
	memcpy(&old, packet.bytes + packet.end, sizeof(old));
	shca_packet_put64(&packet, old);
	end_packet(flow, 0);
}

/* Writes an ACK or a NAK of the packet with that number. */
static void write_ack(const struct flow *flow, unsigned syndrome, uint32_t number)
{
	begin_packet(flow, ACKNOWLEDGE, number, 0, false);
	put_aeth(flow, syndrome);
	end_packet(flow, number);
}

/* ---------------------------------------------------------------- both directions */

static struct shca_ud_dest path_of(const struct shca_qp_entry *entry)
{
	const struct ibv_ah_attr *path = &entry->attr.ah_attr;

	return (struct shca_ud_dest){
		.hca = entry->dest_hca < shca_self.fabric.hdr->nhcas ? (int)entry->dest_hca : -1,
		.global = path->is_global,
		.sl = path->sl,
		.traffic_class = path->grh.traffic_class,
		.hop_limit = path->grh.hop_limit,
		.sgid_index = path->grh.sgid_index,
		.dlid = path->dlid,
		.flow_label = path->grh.flow_label,
		.dgid = path->grh.dgid,
	};
}

/* Returns the packets that leave a QP, which is connected, at the time `at`. */
static struct flow flow_of(const struct shca_req *req, const struct shca_hca *from,
			   const struct shca_qp_entry *entry, uint64_t at)
{
	return (struct flow){
		.qp = req->qp,
		.wqe = req->wqe,
		.from = from,
		.path = path_of(entry),
		.qpn = entry->dest_qpn,
		.pkey = entry->pkey,
		.packets = packets_of(req->qp, req->wqe->length),
		.begin = at,
		.end = at,
	};
}

/* Has the link model's times for the packets that leave by the message's data. */
static void pace(struct flow *flow)
{
	const struct shca_progress *progress = &flow->qp->cur;

	if (progress->arrives_at) {
		flow->begin = progress->first_at - shca_link_latency();
		flow->end = progress->arrives_at - shca_link_latency();
	}
}

/* Keeps the packets of a QP in order in time. */
static void keep_order(struct flow *flow)
{
	if (flow->begin < flow->qp->captured_at)
		flow->begin = flow->qp->captured_at;
	if (flow->end < flow->begin)
		flow->end = flow->begin;
	flow->qp->captured_at = flow->end;
}

/* Returns how many packets of a SEND or WRITE leave before an answer stops the sender. */
static uint32_t packets_sent(const struct flow *flow, enum shca_answer answer)
{
	if (answer != SHCA_RNR)
		return flow->packets;
	return packets_of(flow->qp, flow->qp->cur.arrives_at ? flow->qp->cur.on_link : 1);
}

static void write_requests(const struct shca_req *req, enum shca_answer answer)
{
	struct flow flow = flow_of(req, req->qp->ctx->hca, req->qp->entry,
				   shca_link_departs_at(req->qp, req->wqe));

	if (!req->qp->cur.to_us)
		pace(&flow);
	keep_order(&flow);
	flow.careful = answer != SHCA_ACK;
	switch (req->wqe->opcode) {
	case IBV_WR_RDMA_READ:
		write_read_request(&flow);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		write_atomic_request(&flow);
		break;
	default:
		write_sends(&flow, packets_sent(&flow, answer));
	}
}

static void write_positive(const struct shca_req *req)
{
	struct flow flow = flow_of(req, req->target.hca, req->target.qp, shca_now());

	switch (req->wqe->opcode) {
	case IBV_WR_RDMA_READ:
		pace(&flow);
		write_read_responses(&flow);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		pace(&flow);
		write_atomic_ack(&flow);
		break;
	default:
		if (req->qp->cur.arrives_at)
			flow.begin = flow.end = req->qp->cur.arrives_at;
		write_ack(&flow, SYNDROME_ACK, flow.packets - 1);
	}
}

static void write_negative(const struct shca_req *req, enum shca_answer answer)
{
	static const uint8_t code[] = {
		[SHCA_NAK_SEQ] = 0, [SHCA_NAK_INV] = 1, [SHCA_NAK_ACCESS] = 2, [SHCA_NAK_OP] = 3};
	struct flow flow = flow_of(req, req->target.hca, req->target.qp, shca_now());

	if (answer == SHCA_RNR)
		write_ack(&flow, SYNDROME_RNR | (req->target.qp->attr.min_rnr_timer & 31u), 0);
	else if (answer == SHCA_NAK_SEQ)
		/* The PSN that the responder expects. */
		write_ack(&flow, SYNDROME_NAK,
			  atomic_load(&req->target.qp->epsn) - atomic_load(&req->qp->psn));
	else
		write_ack(&flow, SYNDROME_NAK | code[answer], 0);
}

void shca_captured_message(const struct shca_req *req, enum shca_answer answer)
{
	int cancel = shca_capture_lock();

	write_requests(req, answer);
	if (answer == SHCA_ACK)
		req->qp->captured++;
	if (req->qp->entry->type != IBV_QPT_UC && answer != SHCA_SILENT) {
		if (answer == SHCA_ACK)
			write_positive(req);
		else
			write_negative(req, answer);
	}
	shca_capture_unlock(cancel);
}

void shca_captured_datagram(const struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	const struct shca_swqe *wqe = req->wqe;
	struct flow flow = {
		.qp = qp,
		.wqe = wqe,
		.from = qp->ctx->hca,
		.path = wqe->ud,
		.qpn = wqe->ud.qpn,
		.pkey = qp->entry->pkey,
		.packets = 1,
		.begin = shca_link_departs_at(qp, wqe),
	};
	int cancel = shca_capture_lock();

	pace(&flow);
	keep_order(&flow);
	begin_packet(&flow, opcode_of(wqe, true, true), qp->captured++, wqe->length, true);
	shca_packet_put32(&packet, shca_ud_qkey(qp, wqe));
	shca_packet_put32(&packet, qp->ibv.qp_base.qp_num);
	if (has_imm(wqe))
		shca_packet_put(&packet, &wqe->imm, sizeof(wqe->imm));
	shca_packet_put(&packet, qp->datagram + sizeof(struct ibv_grh), wqe->length);
	end_packet(&flow, 0);
	shca_capture_unlock(cancel);
}

/* ---------------------------------------------------------------- as the options ask */

void shca_recorded_message(const struct shca_req *req)
{
	if (shca_tracing())
		shca_traced_message(req, IBV_WC_SUCCESS);
	if (shca_records(SHCA_RECORD_PACKETS))
		shca_captured_message(req, SHCA_ACK);
}

void shca_recorded_datagram(const struct shca_req *req, enum ibv_wc_status status)
{
	if (shca_tracing())
		shca_traced_message(req, status);
	if (status == IBV_WC_SUCCESS && shca_records(SHCA_RECORD_PACKETS))
		shca_captured_datagram(req);
}
