/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c - the MPI functions that overlap.c calls, between two ranks, on bare verbs: receives and
 * sends are posted to the queue pair of their tag, and a completion queue is polled. Nothing is
 * matched, and no message may be unexpected. So overlap.c measures the figures that the adapter
 * leaves to any library. The MPI library that is linked behind this file does everything else.
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "pair.h"

#define TAGS      3 /* 0 to TAG_STEP; no message has tag 0 */
#define DEPTH     32
#define STEPS     8 /* receives that are posted ahead for go-aheads */
#define SIGNALLED 4 /* every fourth go-ahead is signalled */
#define INLINE    192u
#define BUFFERS   2
#define YIELD     64 /* empty polls before sched_yield(), as many as the libraries have */

enum { SENDS, RECEIVES, WAYS };

struct address {
	uint16_t lid;
	uint32_t qpn[TAGS];
};

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_port_attr port;
	struct ibv_qp *qp[TAGS];
	struct ibv_cq *cq[TAGS][WAYS];
	struct ibv_mr *mr[BUFFERS];
	uint32_t steps; /* go-aheads (TAG_STEP) that were sent, and those that are complete */
	uint32_t steps_done;
} verbs;

/* ---- the connection ---- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("there is no adapter");
	verbs.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!verbs.context || ibv_query_port(verbs.context, 1, &verbs.port))
		die("the first adapter can't be opened");
	if (verbs.port.link_layer == IBV_LINK_LAYER_ETHERNET)
		die("the first adapter's port isn't InfiniBand");
	verbs.pd = ibv_alloc_pd(verbs.context);
	if (!verbs.pd)
		die("no protection domain");
}

static void make_queues(int tag)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 1, 1, INLINE},
	};

	for (int way = 0; way < WAYS; way++) {
		verbs.cq[tag][way] = ibv_create_cq(verbs.context, DEPTH, NULL, NULL, 0);
		if (!verbs.cq[tag][way])
			die("no completion queue");
	}
	attr.send_cq = verbs.cq[tag][SENDS];
	attr.recv_cq = verbs.cq[tag][RECEIVES];
	verbs.qp[tag] = ibv_create_qp(verbs.pd, &attr);
	if (!verbs.qp[tag])
		die("no queue pair");
}

static void connect(struct ibv_qp *qp, uint16_t lid, uint32_t qpn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int rc;

	rc = ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = verbs.port.active_mtu,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, /* 10 us */
		.ah_attr = {.dlid = lid, .port_num = 1},
	};
	if (!rc)
		rc = ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	if (!rc)
		rc = ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		die("the queue pairs can't be connected: %s", strerror(rc));
}

static void post_recv(int tag, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = sge ? 1 : 0}, *bad;

	if (ibv_post_recv(verbs.qp[tag], &wr, &bad))
		die("a receive can't be posted");
}

int MPI_Init(int *argc, char ***argv)
{
	struct address mine = {0}, all[2];
	int rc = PMPI_Init(argc, argv), rank, ranks;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		return rc; /* overlap.c reports the error */
	open_device();
	mine.lid = verbs.port.lid;
	for (int tag = TAG_DATA; tag < TAGS; tag++) {
		make_queues(tag);
		mine.qpn[tag] = verbs.qp[tag]->qp_num;
	}
	PMPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	for (int tag = TAG_DATA; tag < TAGS; tag++)
		connect(verbs.qp[tag], all[!rank].lid, all[!rank].qpn[tag]);
	for (int i = 0; i < STEPS; i++)
		post_recv(TAG_STEP, NULL);
	PMPI_Barrier(MPI_COMM_WORLD);
	return rc;
}

int MPI_Finalize(void)
{
	PMPI_Barrier(MPI_COMM_WORLD); /* all messages have arrived */
	for (int tag = TAG_DATA; tag < TAGS && verbs.context; tag++) {
		ibv_destroy_qp(verbs.qp[tag]);
		for (int way = 0; way < WAYS; way++)
			ibv_destroy_cq(verbs.cq[tag][way]);
	}
	for (int i = 0; i < BUFFERS && verbs.mr[i]; i++)
		ibv_dereg_mr(verbs.mr[i]);
	if (verbs.context) {
		ibv_dealloc_pd(verbs.pd);
		ibv_close_device(verbs.context);
	}
	return PMPI_Finalize();
}

/* ---- messages ---- */

/* Returns the key of a buffer. The program has two buffers; one that has grown is registered again.
 */
static uint32_t lkey_of(const void *addr, size_t len)
{
	int i = 0;

	while (i < BUFFERS - 1 && verbs.mr[i] && verbs.mr[i]->addr != addr)
		i++;
	if (verbs.mr[i] && verbs.mr[i]->addr == addr && verbs.mr[i]->length >= len)
		return verbs.mr[i]->lkey;
	if (verbs.mr[i])
		ibv_dereg_mr(verbs.mr[i]);
	verbs.mr[i] = ibv_reg_mr(verbs.pd, (void *)(uintptr_t)addr, len, IBV_ACCESS_LOCAL_WRITE);
	if (!verbs.mr[i])
		die("%zu bytes can't be registered", len);
	return verbs.mr[i]->lkey;
}

static int post_send(const void *buf, size_t len, int tag, bool signalled)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = (uint32_t)len};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = len > 0, .opcode = IBV_WR_SEND}, *bad;

	if (len <= INLINE)
		wr.send_flags = IBV_SEND_INLINE;
	else
		sge.lkey = lkey_of(buf, len);
	if (signalled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(verbs.qp[tag], &wr, &bad);
}

/* Returns the request of an operation: the queue of its completion. */
static MPI_Request request_of(struct ibv_cq *cq)
{
	return (MPI_Request)(void *)cq;
}

int MPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	(void)type, (void)to, (void)comm;
	if (post_send(buf, (size_t)n, tag, true))
		die("a send can't be posted");
	*request = request_of(verbs.cq[tag][SENDS]);
	return MPI_SUCCESS;
}

int MPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = (uint32_t)n};

	(void)type, (void)from, (void)comm;
	sge.lkey = lkey_of(buf, (size_t)n);
	post_recv(tag, &sge);
	*request = request_of(verbs.cq[tag][RECEIVES]);
	return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct ibv_cq *cq = (struct ibv_cq *)(void *)*request;
	struct ibv_wc wc;
	int n;

	(void)status;
	for (unsigned i = 1; !(n = ibv_poll_cq(cq, 1, &wc)); i++) {
		if (i % YIELD == 0)
			sched_yield();
	}
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("a message failed: %s", n < 0 ? "no poll" : ibv_wc_status_str(wc.status));
	return MPI_SUCCESS;
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status *statuses)
{
	(void)statuses;
	for (int i = 0; i < n; i++)
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
	return MPI_SUCCESS;
}

/* Sends a go-ahead, without waiting for its completion. */
static void send_step(void)
{
	MPI_Request request = request_of(verbs.cq[TAG_STEP][SENDS]);

	if (post_send(NULL, 0, TAG_STEP, ++verbs.steps % SIGNALLED == 0))
		die("a send can't be posted");
	while (verbs.steps - verbs.steps_done > DEPTH / 2) {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		verbs.steps_done += SIGNALLED;
	}
}

int MPI_Send(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	MPI_Request request;

	if (tag == TAG_STEP) {
		send_step();
		return MPI_SUCCESS;
	}
	MPI_Isend(buf, n, type, to, tag, comm, &request);
	return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPI_Recv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	     MPI_Status *status)
{
	MPI_Request request = request_of(verbs.cq[tag][RECEIVES]);

	if (tag != TAG_STEP)
		MPI_Irecv(buf, n, type, from, tag, comm, &request);
	MPI_Wait(&request, status);
	if (tag == TAG_STEP)
		post_recv(tag, NULL);
	return MPI_SUCCESS;
}
