/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that matches messages, in plain verbs. A receiver has an XRC shared receive queue for
 * each of two tags. A sender names a queue with each message. Messages come in another order than
 * their receives were posted, and each one lies in the buffer of its tag: the adapter has matched.
 *
 * Both ends are in one process, to keep the example short.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 2, ROOM = 64 };

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *sent, *received;
static struct ibv_xrcd *domain;
static struct ibv_port_attr port;
static union ibv_gid gid;
static struct ibv_mr *memory;
static char buffer[2 * TAGS][ROOM]; /* a receive and a message for each tag */

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, /* a domain of this process alone */
		.oflags = O_CREAT,
	};

	must(list && list[0], "no device: run this by \"softhca run -- ./xrc_match\"");
	device = ibv_open_device(list[0]);
	must(device != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	must(!ibv_query_port(device, 1, &port), "ibv_query_port");
	must(!ibv_query_gid(device, 1, 0, &gid), "ibv_query_gid");
	pd = ibv_alloc_pd(device);
	sent = ibv_create_cq(device, 16, NULL, NULL, 0);
	received = ibv_create_cq(device, 16, NULL, NULL, 0);
	must(pd && sent && received, "protection domain and completion queues");
	memory = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	must(memory != NULL, "ibv_reg_mr");
	domain = ibv_open_xrcd(device, &attr);
	must(domain != NULL, "ibv_open_xrcd");
}

/* Creates one end of a connection: the initiator sends, the target only belongs to the domain. */
static struct ibv_qp *create_end(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = sent,
		.cap = {.max_send_wr = 8, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = domain;
	}
	qp = ibv_create_qp_ex(device, &attr);
	must(qp != NULL, "ibv_create_qp_ex");
	return qp;
}

static void connect_end(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = port.active_mtu,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7, /* a message without a receive is tried again for ever */
		.ah_attr = {.port_num = 1, .dlid = port.lid},
	};

	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = gid;
		attr.ah_attr.grh.hop_limit = 64;
	}
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

/* Creates the queue of a tag and posts its receive. Returns the number that senders name. */
static uint32_t create_queue(int tag, struct ibv_srq **srq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = domain,
		.cq = received,
	};
	struct ibv_sge sge = {(uintptr_t)buffer[tag], ROOM, memory->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)tag, .sg_list = &sge, .num_sge = 1}, *bad;
	uint32_t number;

	*srq = ibv_create_srq_ex(device, &attr);
	must(*srq != NULL, "ibv_create_srq_ex");
	must(!ibv_get_srq_num(*srq, &number), "ibv_get_srq_num");
	must(!ibv_post_srq_recv(*srq, &wr, &bad), "ibv_post_srq_recv");
	return number;
}

static void send_to(struct ibv_qp *initiator, int tag, uint32_t queue)
{
	char *text = buffer[TAGS + tag];
	struct ibv_sge sge = {(uintptr_t)text, ROOM, memory->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = queue,
	};
	struct ibv_send_wr *bad;

	snprintf(text, ROOM, "message with tag %d", tag);
	must(!ibv_post_send(initiator, &wr, &bad), "ibv_post_send");
}

static struct ibv_wc next_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	must(n == 1, "ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

int main(void)
{
	struct ibv_qp *initiator, *target;
	struct ibv_srq *srq[TAGS];
	uint32_t queue[TAGS];
	char wanted[ROOM];
	int wrong = 0;

	open_device();
	initiator = create_end(IBV_QPT_XRC_SEND);
	target = create_end(IBV_QPT_XRC_RECV);
	connect_end(target, initiator->qp_num);
	connect_end(initiator, target->qp_num);

	for (int tag = 0; tag < TAGS; tag++)
		queue[tag] = create_queue(tag, &srq[tag]);
	for (int tag = TAGS - 1; tag >= 0; tag--)
		send_to(initiator, tag, queue[tag]);
	for (int i = 0; i < TAGS; i++) {
		struct ibv_wc wc = next_completion(received);

		next_completion(sent);
		snprintf(wanted, sizeof(wanted), "message with tag %d", (int)wc.wr_id);
		printf("receive %d holds \"%s\"\n", (int)wc.wr_id, buffer[wc.wr_id]);
		wrong += strcmp(buffer[wc.wr_id], wanted) != 0;
	}

	ibv_destroy_qp(initiator);
	ibv_destroy_qp(target);
	for (int tag = 0; tag < TAGS; tag++)
		ibv_destroy_srq(srq[tag]);
	ibv_close_xrcd(domain);
	ibv_dereg_mr(memory);
	ibv_destroy_cq(sent);
	ibv_destroy_cq(received);
	ibv_dealloc_pd(pd);
	ibv_close_device(device);
	return wrong != 0;
}
