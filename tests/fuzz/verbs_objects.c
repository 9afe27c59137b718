/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues, memory regions and other objects come and go; and the attributes of the device. */
#include "verbs_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Makes an object, which begins with the struct of libibverbs. */
static void *make(size_t size)
{
	void *object = calloc(1, size);

	t_true(object, "no memory");
	fake.nobjects++;
	return object;
}

static int unmake(void *object)
{
	fake.nobjects--;
	free(object);
	return 0;
}

/* ---- objects ---- */

static void drop_recvs(struct recv *recvs)
{
	struct recv *recv, *next;

	DL_FOREACH_SAFE(recvs, recv, next)
		free(recv);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct qp *qp = make(sizeof(*qp));

	qp->ibv = (struct ibv_qp){
		.context = ctx,
		.qp_type = attr->qp_type,
		.qp_num = fake.next_qpn++,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
	};
	qp->max_sends = attr->cap.max_send_wr;
	qp->max_recvs = attr->cap.max_recv_wr;
	DL_APPEND(fake.qps, qp);
	return &qp->ibv;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
	};

	return create_qp_ex(pd->context, &ex);
}

static struct ibv_qp *open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.qp_type = attr->qp_type};

	struct qp *own;

	/* The number may belong to this process. Half of the other numbers belong to nobody. */
	DL_SEARCH_SCALAR(fake.qps, own, ibv.qp_num, attr->qp_num);
	if (!own && attr->qp_num % 2) {
		errno = EINVAL;
		return NULL;
	}
	return create_qp_ex(ctx, &ex);
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct qp *qp = (struct qp *)ibv;

	if (mask & IBV_QP_PATH_MTU &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return EINVAL;
	if (mask & IBV_QP_DEST_QPN && attr->dest_qp_num >> 24)
		return EINVAL;
	if (mask & IBV_QP_RQ_PSN && attr->rq_psn >> 24)
		return EINVAL;
	qp->ibv.state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_ERR)
		fake_fail(qp, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

/* Removes the completions of a QP, as adapters' libraries do when the QP is destroyed. */
static void clean(struct cq *cq, uint32_t qpn)
{
	struct completion *completion, *next;

	DL_FOREACH_SAFE(cq->done, completion, next) {
		if (completion->wc.qp_num != qpn)
			continue;
		DL_DELETE(cq->done, completion);
		cq->n--;
		free(completion);
	}
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct qp *qp = (struct qp *)ibv;
	struct send *send, *next;

	if (qp->ibv.send_cq)
		clean((struct cq *)qp->ibv.send_cq, qp->ibv.qp_num);
	DL_FOREACH_SAFE(qp->sends, send, next)
		free(send);
	drop_recvs(qp->recvs);
	DL_DELETE(fake.qps, qp);
	return unmake(qp);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct srq *srq = make(sizeof(*srq));

	srq->ibv.context = ctx;
	srq->cq = attr->cq;
	srq->num = fake.next_srqn++;
	srq->max = attr->attr.max_wr;
	DL_APPEND(fake.srqs, srq);
	return &srq->ibv;
}

static int get_srq_num(struct ibv_srq *ibv, uint32_t *num)
{
	*num = ((struct srq *)ibv)->num;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct srq *srq = (struct srq *)ibv;

	drop_recvs(srq->recvs);
	DL_DELETE(fake.srqs, srq);
	return unmake(srq);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = make(sizeof(*cq));

	(void)vector;
	cq->ibv = (struct ibv_cq){
		.context = ctx, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	return &cq->ibv;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	t_true(((struct cq *)ibv)->n <= cqe,
	       "a completion queue is made smaller than what it holds");
	ibv->cqe = cqe;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *completion, *next;

	DL_FOREACH_SAFE(cq->done, completion, next)
		free(completion);
	return unmake(cq);
}

static struct mr *mr_new(struct ibv_pd *pd, void *addr, size_t len)
{
	struct mr *mr = make(sizeof(*mr));

	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len};
	mr->ibv.lkey = mr->ibv.rkey = fake.next_key++;
	DL_PREPEND(fake.mrs, mr);
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	(void)access;
	return &mr_new(pd, addr, len)->ibv;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, len, (int)access);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	struct mr *mr = mr_new(pd, NULL, SIZE_MAX);

	mr->null = true;
	return &mr->ibv;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct mr *mr = (struct mr *)ibv;

	DL_DELETE(fake.mrs, mr);
	return unmake(mr);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	if (!attr->is_global && !attr->dlid) {
		errno = EINVAL;
		return NULL;
	}
	ah = make(sizeof(*ah));
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return unmake(ah);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	struct ibv_xrcd *xrcd = make(sizeof(*xrcd));

	(void)attr;
	xrcd->context = ctx;
	return xrcd;
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	return unmake(xrcd);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = make(sizeof(*pd));

	pd->context = ctx;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return unmake(pd);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel));

	channel->context = ctx;
	channel->fd = eventfd(0, EFD_CLOEXEC);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	return unmake(channel);
}

/* ---- the device ---- */

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_fork_init(void)
{
	return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	list[0] = &fake.dev;
	*n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	struct verbs_context *extended = &fake.ctx;

	extended->sz = sizeof(*extended);
	extended->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	extended->context.device = dev;
	/* The library only changes this descriptor's flags. */
	extended->context.async_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake.nobjects++;
	return &extended->context;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	if (!fake.event)
		return -1;
	fake.event = false;
	event->event_type = IBV_EVENT_CQ_ERR;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

int ibv_close_device(struct ibv_context *ctx)
{
	close(ctx->async_fd);
	fake.nobjects--;
	return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = (struct ibv_device_attr){
		.device_cap_flags = IBV_DEVICE_XRC,
		.phys_port_cnt = 1,
		.max_qp = 1000,
		.max_qp_wr = 64,
		.max_sge = MAX_SGE,
		.max_cqe = 4096,
		.max_srq = 1000,
		.max_srq_wr = 64,
		.max_srq_sge = MAX_SGE,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
	};
	return 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr all = {
		.state = IBV_PORT_ACTIVE,
		.active_mtu = IBV_MTU_4096,
		.max_msg_sz = 1 << 30,
		.pkey_tbl_len = 1,
		.lid = 1,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
	};

	(void)ctx;
	(void)port;
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

/* Functions to which inline functions refer, for other devices than this one. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)ctx;
	(void)port;
	(void)attr;
	return ENOTSUP;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)ctx;
	(void)port;
	(void)index;
	(void)entry;
	(void)flags;
	(void)size;
	return ENODATA;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	(void)port;
	(void)index;
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	gid->raw[15] = 1;
	return 0;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	(void)port;
	(void)index;
	*pkey = 0xffff;
	return 0;
}

/* No service thread waits here. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	(void)channel;
	(void)cq;
	(void)cq_context;
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS ? "success" : "an error";
}

void fake_fill_table(struct verbs_context *ctx)
{
	ctx->query_port = query_port;
	ctx->alloc_null_mr = alloc_null_mr;
	ctx->create_qp_ex = create_qp_ex;
	ctx->open_qp = open_qp;
	ctx->create_srq_ex = create_srq_ex;
	ctx->get_srq_num = get_srq_num;
	ctx->open_xrcd = open_xrcd;
	ctx->close_xrcd = close_xrcd;
	ctx->context.ops.poll_cq = fake_poll_cq;
	ctx->context.ops.post_send = fake_post_send;
	ctx->context.ops.post_recv = fake_post_recv;
	ctx->context.ops.post_srq_recv = fake_post_srq_recv;
}
