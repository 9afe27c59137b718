/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#define GRH       40
#define MAX_SGE   4
#define FIRST_QPN 0x100
#define MANY      100000 /* times that a run waits at most */

#define MUST(cond, what)                                          \
	do {                                                      \
		if (!(cond)) {                                    \
			fprintf(stderr, "violation: %s\n", what); \
			abort();                                  \
		}                                                 \
	} while (0)

struct recv {
	uint64_t wr_id;
	struct ibv_sge sge[MAX_SGE];
	int n;
	struct recv *next, *prev;
};

struct send {
	uint64_t wr_id;
	bool signaled;
	struct send *next, *prev;
};

struct completion {
	struct ibv_wc wc;
	struct completion *next, *prev;
};

struct cq {
	struct ibv_cq ibv;
	struct completion *done;
	int n;
};

struct srq {
	struct ibv_srq ibv;
	struct ibv_cq *cq;
	uint32_t num;
	struct recv *recvs;
	uint32_t n, max;
	struct srq *next, *prev;
};

struct qp {
	struct ibv_qp ibv;
	struct send *sends;
	struct recv *recvs;
	uint32_t nsends, nrecvs, max_sends, max_recvs;
	struct qp *next, *prev;
};

struct mr {
	struct ibv_mr ibv;
	bool null;
	struct mr *next, *prev;
};

static struct {
	struct verbs_context ctx;
	struct ibv_device dev;
	struct srq *srqs;
	struct qp *qps;
	struct mr *mrs;
	uint32_t next_qpn, next_srqn, next_key;
	int nobjects; /* of all kinds */
	bool cut;
	uint64_t now, random, yields;
	void (*datagram)(const uint8_t *bytes, uint32_t len);
} fake;

/* Objects begin with what libibverbs hands out. */
static void *make(size_t size)
{
	void *object = calloc(1, size);

	MUST(object, "no memory");
	fake.nobjects++;
	return object;
}

static int unmake(void *object)
{
	fake.nobjects--;
	free(object);
	return 0;
}

/* ---- completions ---- */

static void push(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *c = malloc(sizeof(*c));

	MUST(cq->n < cq->ibv.cqe, "a completion queue overruns");
	c->wc = *wc;
	DL_APPEND(cq->done, c);
	cq->n++;
}

static int poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *c;
	int i;

	for (i = 0; i < n && (c = cq->done); i++) {
		wc[i] = c->wc;
		DL_DELETE(cq->done, c);
		cq->n--;
		free(c);
	}
	return i;
}

static void end_send(struct qp *qp, enum ibv_wc_status status)
{
	struct send *s = qp->sends;
	struct ibv_wc wc = {.wr_id = s->wr_id, .status = status, .qp_num = qp->ibv.qp_num};

	if (s->signaled || status != IBV_WC_SUCCESS)
		push(qp->ibv.send_cq, &wc);
	DL_DELETE(qp->sends, s);
	qp->nsends--;
	free(s);
}

static void fail(struct qp *qp, enum ibv_wc_status status)
{
	qp->ibv.state = IBV_QPS_ERR;
	for (; qp->sends; status = IBV_WC_WR_FLUSH_ERR)
		end_send(qp, status);
}

/* ---- memory ---- */

static const struct mr *find_mr(uint32_t lkey)
{
	const struct mr *mr;

	DL_FOREACH(fake.mrs, mr) {
		if (mr->ibv.lkey == lkey)
			return mr;
	}
	return NULL;
}

static void check_memory(const struct ibv_sge *sge)
{
	const struct mr *mr = find_mr(sge->lkey);

	MUST(mr, "memory that isn't registered is used");
	MUST(mr->null || (sge->addr >= (uintptr_t)mr->ibv.addr &&
			  sge->addr + sge->length <= (uintptr_t)mr->ibv.addr + mr->ibv.length),
	     "memory outside of its registration is used");
}

/* Of a receive that was withdrawn the registration may have gone. */
static enum ibv_wc_status scatter(const struct recv *r, const uint8_t *from, uint32_t len)
{
	for (int i = 0; i < r->n && len; i++) {
		uint32_t n = len < r->sge[i].length ? len : r->sge[i].length;
		const struct mr *mr = find_mr(r->sge[i].lkey);

		if (!mr)
			return IBV_WC_LOC_PROT_ERR;
		if (!mr->null)
			memcpy((void *)(uintptr_t)r->sge[i].addr, from, n);
		from += n;
		len -= n;
	}
	return len ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static struct recv *recv_new(const struct ibv_recv_wr *wr)
{
	struct recv *r = calloc(1, sizeof(*r));

	MUST(wr->num_sge <= MAX_SGE && !wr->next, "a receive has too many pieces");
	r->wr_id = wr->wr_id;
	r->n = wr->num_sge;
	for (int i = 0; i < r->n; i++) {
		r->sge[i] = wr->sg_list[i];
		check_memory(&r->sge[i]);
	}
	return r;
}

/* ---- what arrives ---- */

static bool arrive(struct recv **recvs, uint32_t *n, struct ibv_cq *cq, const void *bytes,
		   uint32_t len)
{
	struct recv *r = *recvs;
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = len};

	if (!r)
		return false;
	wc.wr_id = r->wr_id;
	wc.status = scatter(r, bytes, len);
	DL_DELETE(*recvs, r);
	--*n;
	free(r);
	push(cq, &wc);
	return true;
}

bool fake_datagram(const void *bytes, uint32_t len)
{
	uint8_t *with_grh;
	struct qp *qp;
	bool there;

	DL_FOREACH(fake.qps, qp) {
		if (qp->ibv.qp_type == IBV_QPT_UD)
			break;
	}
	if (!qp)
		return false;
	with_grh = calloc(1, GRH + len);
	memcpy(with_grh + GRH, bytes, len);
	there = arrive(&qp->recvs, &qp->nrecvs, qp->ibv.recv_cq, with_grh, GRH + len);
	free(with_grh);
	return there;
}

bool fake_message(uint32_t index, const void *bytes, uint32_t len)
{
	struct srq *srq = fake.srqs;

	while (srq && index--)
		srq = srq->next;
	return srq && arrive(&srq->recvs, &srq->n, srq->cq, bytes, len);
}

uint32_t fake_srqs(void)
{
	struct srq *srq;
	uint32_t n;

	DL_COUNT(fake.srqs, srq, n);
	return n;
}

void fake_complete(uint32_t n, bool well)
{
	struct qp *qp;
	uint32_t busy = 0;

	DL_FOREACH(fake.qps, qp)
		busy += qp->sends != NULL;
	if (!busy)
		return;
	n %= busy;
	DL_FOREACH(fake.qps, qp) {
		if (qp->sends && !n--)
			break;
	}
	if (well)
		end_send(qp, IBV_WC_SUCCESS);
	else
		fail(qp, IBV_WC_RETRY_EXC_ERR);
}

void fake_cut(void)
{
	struct qp *qp;

	fake.cut = true;
	DL_FOREACH(fake.qps, qp) {
		if (qp->sends)
			fail(qp, IBV_WC_RETRY_EXC_ERR);
	}
}

/* ---- posting ---- */

static uint32_t gather(const struct ibv_send_wr *wr, uint8_t *to, uint32_t room)
{
	uint32_t len = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!(wr->send_flags & IBV_SEND_INLINE))
			check_memory(sge);
		for (uint32_t k = 0; k < sge->length; k++) {
			uint8_t byte = ((const uint8_t *)(uintptr_t)sge->addr)[k];

			if (to && len < room)
				to[len] = byte;
			len++;
		}
	}
	return len;
}

/* What an operation on local memory needs; data of RDMA reads don't matter. */
static void check_send(const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_RDMA_READ) {
		for (int i = 0; i < wr->num_sge; i++)
			check_memory(&wr->sg_list[i]);
	} else {
		gather(wr, NULL, 0);
	}
}

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = (struct qp *)ibv;
	uint8_t bytes[256];
	struct send *s;

	*bad = wr;
	if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->nsends == qp->max_sends)
		return ENOMEM;
	check_send(wr);
	s = calloc(1, sizeof(*s));
	s->wr_id = wr->wr_id;
	s->signaled = wr->send_flags & IBV_SEND_SIGNALED;
	DL_APPEND(qp->sends, s);
	qp->nsends++;
	if (qp->ibv.qp_type == IBV_QPT_UD) {
		fake.datagram(bytes, gather(wr, bytes, sizeof(bytes)));
		end_send(qp, IBV_WC_SUCCESS);
	} else if (qp->ibv.state == IBV_QPS_ERR) {
		end_send(qp, IBV_WC_WR_FLUSH_ERR);
	} else if (fake.cut) {
		fail(qp, IBV_WC_RETRY_EXC_ERR);
	}
	return 0;
}

static int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = (struct qp *)ibv;
	struct recv *r;

	*bad = wr;
	if (qp->nrecvs == qp->max_recvs)
		return ENOMEM;
	r = recv_new(wr);
	DL_APPEND(qp->recvs, r);
	qp->nrecvs++;
	return 0;
}

static int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct srq *srq = (struct srq *)ibv;
	struct recv *r;

	*bad = wr;
	if (srq->n == srq->max)
		return ENOMEM;
	r = recv_new(wr);
	DL_APPEND(srq->recvs, r);
	srq->n++;
	return 0;
}

/* ---- objects ---- */

static void drop_recvs(struct recv *recvs)
{
	struct recv *r, *next;

	DL_FOREACH_SAFE(recvs, r, next)
		free(r);
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

	/* Half of the numbers are nobody's. */
	if (attr->qp_num % 2) {
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
		fail(qp, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

/* As adapters' libraries do it: what a QP has completed goes with it. */
static void clean(struct cq *cq, uint32_t qpn)
{
	struct completion *c, *next;

	DL_FOREACH_SAFE(cq->done, c, next) {
		if (c->wc.qp_num != qpn)
			continue;
		DL_DELETE(cq->done, c);
		cq->n--;
		free(c);
	}
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct qp *qp = (struct qp *)ibv;
	struct send *s, *next;

	if (qp->ibv.send_cq)
		clean((struct cq *)qp->ibv.send_cq, qp->ibv.qp_num);
	DL_FOREACH_SAFE(qp->sends, s, next)
		free(s);
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

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *c, *next;

	DL_FOREACH_SAFE(cq->done, c, next)
		free(c);
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
	struct verbs_context *v = &fake.ctx;

	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.device = dev;
	fake.nobjects++;
	return &v->context;
}

int ibv_close_device(struct ibv_context *ctx)
{
	(void)ctx;
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

/* What inline functions refer to, for other devices than this one. */
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

/* ---- time and random numbers: the library is built to call these ---- */

int fuzz_clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	fake.now += 1000;
	t->tv_sec = (time_t)(fake.now / 1000000000);
	t->tv_nsec = (long)(fake.now % 1000000000);
	return 0;
}

ssize_t fuzz_getrandom(void *to, size_t len, unsigned int flags)
{
	uint64_t r = ++fake.random * UINT64_C(0x9e3779b97f4a7c15);

	(void)flags;
	memcpy(to, &r, len < sizeof(r) ? len : sizeof(r));
	return (ssize_t)len;
}

int fuzz_sched_yield(void)
{
	MUST(++fake.yields < MANY, "waiting doesn't come to an end");
	fake.now += 50000000;
	return 0;
}

/* The file of the XRC domain is the same file in each run. */
int fuzz_fstat(int fd, struct stat *st)
{
	int rc = fstat(fd, st);

	st->st_dev = st->st_ino = 1;
	return rc;
}

int fuzz_fstatat(int dir, const char *name, struct stat *st, int flags)
{
	int rc = fstatat(dir, name, st, flags);

	st->st_dev = st->st_ino = 1;
	return rc;
}

void fake_clock_add(uint64_t ns)
{
	fake.now += ns;
}

/* ---- life ---- */

void fake_start(void (*datagram)(const uint8_t *bytes, uint32_t len))
{
	memset(&fake, 0, sizeof(fake));
	strcpy(fake.dev.name, "fake0");
	fake.ctx.query_port = query_port;
	fake.ctx.alloc_null_mr = alloc_null_mr;
	fake.ctx.create_qp_ex = create_qp_ex;
	fake.ctx.open_qp = open_qp;
	fake.ctx.create_srq_ex = create_srq_ex;
	fake.ctx.get_srq_num = get_srq_num;
	fake.ctx.open_xrcd = open_xrcd;
	fake.ctx.close_xrcd = close_xrcd;
	fake.ctx.context.ops.poll_cq = poll_cq;
	fake.ctx.context.ops.post_send = post_send;
	fake.ctx.context.ops.post_recv = post_recv;
	fake.ctx.context.ops.post_srq_recv = post_srq_recv;
	fake.next_qpn = FIRST_QPN;
	fake.next_srqn = fake.next_key = 1;
	fake.now = 1000000000;
	fake.datagram = datagram;
}

void fake_nothing_left(void)
{
	MUST(!fake.nobjects, "an object of the device's is left");
}
