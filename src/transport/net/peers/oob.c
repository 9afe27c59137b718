/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/oob.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/mem.h"
#include "net/peers/link.h"

/* Buffers for datagrams. A job's processes may all ask one of them at once. A choice: what
 * overflows is lost and sent again, which delays a connection; each buffer takes ROOM bytes of
 * registered memory. */
#define RECVS 256
#define SENDS 64

#define GRH  40  /* bytes in front of each datagram that was received */
#define ROOM 256 /* bytes of a buffer, the GRH included */

struct datagram {
	struct tq_work work; /* first */
	uint8_t *bytes;
	struct datagram *next; /* tq_oob.free */
};

struct tq_oob {
	struct ibv_qp *qp;
	uint32_t qkey;
	uint64_t nonce;
	tq_oob_handler *handler;
	uint8_t *memory; /* of all datagrams */
	struct tq_reg reg;
	struct datagram recvs[RECVS], sends[SENDS], *free;
	uint32_t nrecvs, nsends;
};

static bool is_length_of(uint8_t type, uint32_t len)
{
	switch (type) {
	case TQ_OOB_REQ:
		return len == sizeof(struct tq_oob_req);
	case TQ_OOB_REP:
		return len == sizeof(struct tq_oob_rep);
	case TQ_OOB_BYE:
	case TQ_OOB_BYE_ACK:
	case TQ_OOB_CUT:
	case TQ_OOB_CUT_ACK:
	case TQ_OOB_ASK:
	case TQ_OOB_FATE:
	case TQ_OOB_WAKE:
		return len == sizeof(struct tq_oob_hdr);
	case TQ_OOB_LOOK_UP:
	case TQ_OOB_LOOKED_UP:
		return len == sizeof(struct tq_oob_look_up);
	}
	return false;
}

/* Returns true if the datagram is for a process of which only the port and the UD QP are known. */
static bool is_look_up(uint8_t type)
{
	return type == TQ_OOB_LOOK_UP || type == TQ_OOB_LOOKED_UP;
}

/* Returns true if the datagram is whole, of this version, and for this endpoint: its UD QP's number
 * may have been another's before. */
static bool is_valid(const struct tq_oob *oob, const struct tq_oob_hdr *hdr, uint32_t len)
{
	return len >= sizeof(*hdr) && tq_get32(hdr->magic) == TQ_ADDRESS_MAGIC &&
	       tq_get16(hdr->version) == TQ_ADDRESS_VERSION &&
	       tq_get64(hdr->to) == (is_look_up(hdr->type) ? 0 : oob->nonce) &&
	       is_length_of(hdr->type, len);
}

static void received(struct tq_net *net, const uint8_t *bytes, uint32_t len)
{
	const struct tq_oob_hdr *datagram = (const void *)bytes;

	if (is_valid(net->oob, datagram, len))
		net->oob->handler(net, datagram);
	else
		TQ_COUNT(net->stats, dropped);
}

/* A receive that is about to be posted. */
struct recv_wr {
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
};

static void recv_wr(const struct tq_oob *oob, struct datagram *datagram, struct recv_wr *to)
{
	to->sge = (struct ibv_sge){(uintptr_t)datagram->bytes, ROOM, oob->reg.lkey};
	to->wr = (struct ibv_recv_wr){
		.wr_id = (uintptr_t)&datagram->work,
		.sg_list = &to->sge,
		.num_sge = 1,
	};
}

static void post_again(struct tq_oob *oob, struct datagram *datagram)
{
	struct recv_wr one;
	struct ibv_recv_wr *bad;

	recv_wr(oob, datagram, &one);
	ibv_post_recv(oob->qp, &one.wr, &bad);
}

/* Posts all receives in one call. Their work requests take too much memory for the stack. */
static int post_all(struct tq_oob *oob)
{
	struct recv_wr *all = malloc(oob->nrecvs * sizeof(*all));
	struct ibv_recv_wr *bad;
	int rc;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < oob->nrecvs; i++) {
		recv_wr(oob, &oob->recvs[i], &all[i]);
		if (i)
			all[i - 1].wr.next = &all[i].wr;
	}
	rc = ibv_post_recv(oob->qp, &all[0].wr, &bad);
	free(all);
	return -rc;
}

static void recv_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct datagram *datagram = (struct datagram *)work;

	if (wc->status != IBV_WC_SUCCESS)
		return; /* flushed */
	if (wc->byte_len >= GRH && wc->byte_len <= ROOM)
		received(net, datagram->bytes + GRH, wc->byte_len - GRH);
	post_again(net->oob, datagram);
}

static void send_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct datagram *datagram = (struct datagram *)work;

	(void)wc; /* a datagram that failed is a lost one */
	LL_PREPEND(net->oob->free, datagram);
}

struct tq_oob_hdr tq_oob_hdr(const struct tq_net *net, const struct tq_link *link,
			     enum tq_oob_type type, uint64_t txid)
{
	return (struct tq_oob_hdr){
		.magic = tq_put32(TQ_ADDRESS_MAGIC),
		.version = tq_put16(TQ_ADDRESS_VERSION),
		.type = (uint8_t)type,
		.to = tq_put64(link->nonce),
		.from = tq_put64(net->oob->nonce),
		.txid = tq_put64(txid),
	};
}

struct tq_oob_hdr tq_oob_stranger(const struct tq_net *net, enum tq_oob_type type)
{
	return (struct tq_oob_hdr){
		.magic = tq_put32(TQ_ADDRESS_MAGIC),
		.version = tq_put16(TQ_ADDRESS_VERSION),
		.type = (uint8_t)type,
		.from = tq_put64(net->oob->nonce),
	};
}

bool tq_oob_send(struct tq_net *net, const struct tq_link *link, const void *bytes, size_t len)
{
	struct ibv_ah *ah = tq_node_ah(net, link->node);

	if (!ah)
		return true;
	return tq_oob_send_to(net, ah, link->ud_qpn, link->ud_qkey, bytes, len);
}

bool tq_oob_send_to(struct tq_net *net, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		    const void *bytes, size_t len)
{
	struct tq_oob *oob = net->oob;
	struct datagram *datagram = oob->free;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	assert(len <= ROOM - GRH);
	if (!datagram) {
		net->scq.look = true;
		return false;
	}
	memcpy(datagram->bytes, bytes, len);
	sge = (struct ibv_sge){(uintptr_t)datagram->bytes, (uint32_t)len, oob->reg.lkey};
	wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)&datagram->work,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		/* Solicited, for the service thread. */
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.wr.ud = {ah, qpn, qkey},
	};
	if (!ibv_post_send(oob->qp, &wr, &bad))
		LL_DELETE(oob->free, datagram);
	return true;
}

void tq_oob_wake(struct tq_net *net, const struct tq_link *link)
{
	struct tq_oob_hdr wake = tq_oob_hdr(net, link, TQ_OOB_WAKE, 0);

	tq_oob_send(net, link, &wake, sizeof(wake));
	TQ_COUNT(net->stats, ring_wakeups);
}

bool tq_oob_is_idle(const struct tq_net *net)
{
	const struct datagram *datagram;
	uint32_t n;

	LL_COUNT(net->oob->free, datagram, n);
	return n == net->oob->nsends || net->broken_reason;
}

void tq_oob_names(const struct tq_net *net, uint32_t *qpn, uint32_t *qkey)
{
	*qpn = net->oob->qp->qp_num;
	*qkey = net->oob->qkey;
}

static int to_rts(struct tq_net *net)
{
	struct tq_oob *oob = net->oob;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = net->dev.pkey_index,
		.port_num = net->dev.port_num,
		.qkey = oob->qkey,
	};
	int error = ibv_modify_qp(oob->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	if (error)
		return -error;
	attr.qp_state = IBV_QPS_RTR;
	error = ibv_modify_qp(oob->qp, &attr, IBV_QP_STATE);
	if (error)
		return -error;
	attr.qp_state = IBV_QPS_RTS;
	return -ibv_modify_qp(oob->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int make_qp(struct tq_net *net)
{
	struct tq_oob *oob = net->oob;
	struct ibv_qp_init_attr attr = {
		.send_cq = net->scq.cq,
		.recv_cq = net->rcq.cq,
		.cap = {.max_send_wr = oob->nsends,
			.max_recv_wr = oob->nrecvs,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};

	oob->qp = ibv_create_qp(net->dev.pd, &attr);
	return oob->qp ? 0 : -errno;
}

static void lay_out(struct tq_oob *oob)
{
	uint8_t *p = oob->memory;

	for (uint32_t i = 0; i < oob->nrecvs; i++, p += ROOM)
		oob->recvs[i] = (struct datagram){.work.done = recv_done, .bytes = p};
	for (uint32_t i = 0; i < oob->nsends; i++, p += ROOM) {
		oob->sends[i] = (struct datagram){.work.done = send_done, .bytes = p};
		LL_PREPEND(oob->free, &oob->sends[i]);
	}
}

/* Returns the depth of one of the UD QP's queues. Most of a CQ is for messages. */
static uint32_t depth_of(const struct tq_net *net, uint32_t wanted, const struct tq_cq *cq)
{
	uint32_t most = cq->size / 8;

	if (most > (uint32_t)net->dev.attr.max_qp_wr)
		most = (uint32_t)net->dev.attr.max_qp_wr;
	return wanted < most ? wanted : most;
}

int tq_oob_open(struct tq_net *net, uint64_t nonce, tq_oob_handler *handler)
{
	struct tq_oob *oob = calloc(1, sizeof(*oob));
	int error;

	net->oob = oob;
	if (!oob)
		return -ENOMEM;
	oob->nonce = nonce;
	oob->handler = handler;
	/* Processes of one job know the key, so that they can look each other up. With the highest
	 * bit it would mean the QP's own key. */
	oob->qkey = (uint32_t)((net->job->key * UINT64_C(0x9e3779b97f4a7c15)) >> 33);
	oob->nrecvs = depth_of(net, RECVS, &net->rcq);
	oob->nsends = depth_of(net, SENDS, &net->scq);
	oob->memory = tq_mem_alloc(net, (size_t)(oob->nrecvs + oob->nsends) * ROOM, &oob->reg);
	if (!oob->memory) {
		error = -errno;
		goto free_oob;
	}
	error = -ENOSPC;
	if (!tq_cq_reserve(&net->rcq, oob->nrecvs))
		goto free_memory;
	if (!tq_cq_reserve(&net->scq, oob->nsends))
		goto release_rcq;
	lay_out(oob);
	error = make_qp(net);
	if (error)
		goto release_scq;
	error = to_rts(net);
	if (!error)
		error = post_all(oob);
	if (!error)
		return 0;
	ibv_destroy_qp(oob->qp);
release_scq:
	tq_cq_release(&net->scq, oob->nsends);
release_rcq:
	tq_cq_release(&net->rcq, oob->nrecvs);
free_memory:
	tq_mem_free(net, oob->memory);
free_oob:
	free(oob);
	net->oob = NULL;
	tq_log(net->job, TQ_LOG_ERROR,
	       "The queue pair for connection requests can't be made: %s%s.", strerror(-error),
	       tq_limit_hint(error));
	return error;
}

void tq_oob_close(struct tq_net *net)
{
	struct tq_oob *oob = net->oob;

	if (!oob)
		return;
	ibv_destroy_qp(oob->qp);
	tq_cq_release(&net->scq, oob->nsends);
	tq_cq_release(&net->rcq, oob->nrecvs);
	tq_mem_free(net, oob->memory);
	free(oob);
	net->oob = NULL;
}
