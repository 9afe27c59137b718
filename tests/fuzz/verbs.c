/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, memory, arriving data and posted work; time; the start. */
#include "verbs_state.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define GRH       40
#define FIRST_QPN 0x100
#define MANY      100000 /* most times that a run waits */

struct fake fake;

/* Ends the run by a signal, for which the fuzzer keeps the input. */
void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fputs("violation: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s:%d)\n", file, line);
	abort();
}

/* ---- completions ---- */

static void push(struct ibv_cq *ibv, const struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *completion = malloc(sizeof(*completion));

	t_true(cq->n < cq->ibv.cqe, "a completion queue overruns");
	completion->wc = *wc;
	DL_APPEND(cq->done, completion);
	cq->n++;
}

int fake_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)ibv;
	struct completion *completion;
	int i;

	if (fake.broken)
		return -1;
	for (i = 0; i < n && (completion = cq->done); i++) {
		wc[i] = completion->wc;
		DL_DELETE(cq->done, completion);
		cq->n--;
		free(completion);
	}
	return i;
}

static void end_send(struct qp *qp, enum ibv_wc_status status)
{
	struct send *send = qp->sends;
	struct ibv_wc wc = {.wr_id = send->wr_id, .status = status, .qp_num = qp->ibv.qp_num};

	if (send->signaled || status != IBV_WC_SUCCESS)
		push(qp->ibv.send_cq, &wc);
	DL_DELETE(qp->sends, send);
	qp->nsends--;
	free(send);
}

void fake_fail(struct qp *qp, enum ibv_wc_status status)
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

	t_true(mr, "memory that isn't registered is used");
	t_true(mr->null || (sge->addr >= (uintptr_t)mr->ibv.addr &&
			    sge->addr + sge->length <= (uintptr_t)mr->ibv.addr + mr->ibv.length),
	       "memory outside of its registration is used");
}

/* Copies arriving data to a receive. The memory of a withdrawn receive may be deregistered. */
static enum ibv_wc_status scatter(const struct recv *recv, const uint8_t *from, uint32_t len)
{
	for (int i = 0; i < recv->n && len; i++) {
		uint32_t n = len < recv->sge[i].length ? len : recv->sge[i].length;
		const struct mr *mr = find_mr(recv->sge[i].lkey);

		if (!mr)
			return IBV_WC_LOC_PROT_ERR;
		if (!mr->null)
			memcpy((void *)(uintptr_t)recv->sge[i].addr, from, n);
		from += n;
		len -= n;
	}
	return len ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

static struct recv *recv_new(const struct ibv_recv_wr *wr)
{
	struct recv *recv = calloc(1, sizeof(*recv));

	t_true(wr->num_sge <= MAX_SGE, "a receive has too many pieces");
	recv->wr_id = wr->wr_id;
	recv->n = wr->num_sge;
	for (int i = 0; i < recv->n; i++) {
		recv->sge[i] = wr->sg_list[i];
		check_memory(&recv->sge[i]);
	}
	return recv;
}

/* ---- arriving data ---- */

static bool arrive(struct recv **recvs, uint32_t *n, struct ibv_cq *cq, const void *bytes,
		   uint32_t len)
{
	struct recv *recv = *recvs;
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = len};

	if (!recv)
		return false;
	wc.wr_id = recv->wr_id;
	wc.status = scatter(recv, bytes, len);
	DL_DELETE(*recvs, recv);
	--*n;
	free(recv);
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

void fake_complete(uint32_t n, enum ibv_wc_status status)
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
	if (status == IBV_WC_SUCCESS)
		end_send(qp, status);
	else
		fake_fail(qp, status);
}

void fake_break(bool event)
{
	fake.broken = !event;
	fake.event = event;
}

void fake_cut(void)
{
	struct qp *qp;

	fake.cut = true;
	DL_FOREACH(fake.qps, qp) {
		if (qp->sends)
			fake_fail(qp, IBV_WC_RETRY_EXC_ERR);
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

/* Checks the memory of an operation. The data of RDMA reads don't matter. */
static void check_send(const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_RDMA_READ) {
		for (int i = 0; i < wr->num_sge; i++)
			check_memory(&wr->sg_list[i]);
	} else {
		gather(wr, NULL, 0);
	}
}

int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = (struct qp *)ibv;
	uint8_t bytes[256];
	struct send *send;

	*bad = wr;
	if (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->nsends == qp->max_sends)
		return ENOMEM;
	check_send(wr);
	send = calloc(1, sizeof(*send));
	send->wr_id = wr->wr_id;
	send->signaled = wr->send_flags & IBV_SEND_SIGNALED;
	DL_APPEND(qp->sends, send);
	qp->nsends++;
	if (qp->ibv.qp_type == IBV_QPT_UD) {
		fake.datagram(bytes, gather(wr, bytes, sizeof(bytes)));
		end_send(qp, IBV_WC_SUCCESS);
	} else if (qp->ibv.state == IBV_QPS_ERR) {
		end_send(qp, IBV_WC_WR_FLUSH_ERR);
	} else if (fake.cut) {
		fake_fail(qp, IBV_WC_RETRY_EXC_ERR);
	}
	return 0;
}

int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = (struct qp *)ibv;
	struct recv *recv;

	for (; wr; wr = wr->next) {
		*bad = wr;
		if (qp->nrecvs == qp->max_recvs)
			return ENOMEM;
		recv = recv_new(wr);
		DL_APPEND(qp->recvs, recv);
		qp->nrecvs++;
	}
	return 0;
}

int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct srq *srq = (struct srq *)ibv;
	struct recv *recv;

	for (; wr; wr = wr->next) {
		*bad = wr;
		if (srq->n == srq->max)
			return ENOMEM;
		recv = recv_new(wr);
		DL_APPEND(srq->recvs, recv);
		srq->n++;
	}
	return 0;
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
	t_true(++fake.yields < MANY, "waiting doesn't come to an end");
	fake.now += 50000000;
	return 0;
}

/* Makes the file of the XRC domain the same file in each run. */
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
	fake_fill_table(&fake.ctx);
	fake.next_qpn = FIRST_QPN;
	fake.next_srqn = fake.next_key = 1;
	fake.now = 1000000000;
	fake.datagram = datagram;
}

void fake_nothing_left(void)
{
	t_true(!fake.nobjects, "an object of the device's is left");
}
