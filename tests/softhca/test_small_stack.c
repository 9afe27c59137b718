/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_small_stack.c [default|trap] - two processes that use all kinds of verbs from threads with
 * PTHREAD_STACK_MIN bytes of stack, under --memlock 8M. Some of that is left to programs. default:
 * all threads that the processes make have as little, unless they ask for more, and so would the
 * library's own. trap: signals, with which --clock-tsc trap reads clocks, take what is left.
 */
#define _GNU_SOURCE 1
#include "../caught.h"
#include "../small_stack.h"
#include "procs.h"

enum key { K_RC = 0, K_UD = 8, K_BUF = 16 };
/* Bytes of stack that an MPI library and a module of it were seen to need above the verbs. */
enum { ABOVE = 6 << 10 };
enum { SHORT = 64, LONG = 1 << 20, PIECES = 24, PIECE = 1000, LIMIT = 8 << 20 };

static bool small_default, trapped;
static const unsigned two_nodes[] = {0, 1};

struct end {
	unsigned me;
	struct t_dev *dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* of receives, with events */
	struct ibv_srq *srq;
	struct t_qp *rc, *ud;
	struct ibv_ah *ah;
	struct t_buf out, in;
};

static void open_end(void *arg)
{
	struct end *end = arg;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 64, .max_sge = PIECES}};
	struct t_spec rc = {.cap = {.max_send_wr = 16, .max_send_sge = PIECES}};
	struct t_spec ud = {.type = IBV_QPT_UD};

	end->dev = t_open();
	end->channel = ibv_create_comp_channel(end->dev->ctx);
	t_holds(end->channel);
	end->cq = ibv_create_cq(end->dev->ctx, 16, NULL, end->channel, 0);
	end->srq = ibv_create_srq(end->dev->pd, &srq);
	t_holds(end->cq && end->srq);
	rc.rcq = ud.rcq = end->cq;
	rc.srq = end->srq;
	end->rc = t_qp(end->dev, &rc);
	end->ud = t_qp(end->dev, &ud);
	end->out = t_buf(end->dev, LONG);
	end->in = t_buf(end->dev, LONG);
	procs_connect(end->rc, !end->me, K_RC, NULL);
	t_up(end->ud, NULL, NULL);
	procs_put_addr(K_UD, end->ud);
	procs_put_buf(K_BUF, &end->in);
	procs_barrier();
}

/* Waits for the event of a completion that the other process causes. */
static void take_event(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	t_ok(ibv_get_cq_event(end->channel, &cq, &context));
	t_holds(cq == end->cq);
	ibv_ack_cq_events(cq, 1);
}

static void send_recv(void *arg)
{
	static const size_t sizes[] = {0, SHORT, 3000, 100000, LONG};
	struct end *end = arg;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ibv_sge in = t_sge(&end->in, 0, sizes[i]);

		memset(end->out.addr, (int)(i + end->me), sizes[i]);
		t_srq_recv(end->srq, i, &in, 1);
		t_ok(ibv_req_notify_cq(end->cq, 0));
		procs_barrier();
		t_send(end->rc, i, t_sge(&end->out, 0, sizes[i]));
		t_done(end->rc->scq, i, IBV_WC_SEND);
		take_event(end);
		t_done(end->cq, i, IBV_WC_RECV);
		t_check_byte(end->in.addr, sizes[i], (int)(i + !end->me));
	}
}

/* Sends a message of many pieces into as many, of another length. */
static void pieces(void *arg)
{
	struct end *end = arg;
	static struct ibv_sge out[PIECES], in[PIECES];
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, out, PIECES);

	memset(end->out.addr, (int)end->me, PIECES * PIECE);
	for (unsigned i = 0; i < PIECES; i++) {
		size_t first = i * PIECE + (i ? 300 : 0);

		out[i] = t_sge(&end->out, i * PIECE, PIECE);
		in[i] = t_sge(&end->in, first, (i + 1) * PIECE + 300 - first);
	}
	t_srq_recv(end->srq, 1, in, PIECES);
	procs_barrier();
	t_post(end->rc, &wr);
	t_done(end->rc->scq, 1, IBV_WC_SEND);
	t_done(end->cq, 1, IBV_WC_RECV);
	t_check_byte(end->in.addr, PIECES * PIECE, !end->me);
}

static void one_sided(void *arg)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const enum ibv_wc_opcode done[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
						  IBV_WC_FETCH_ADD};
	struct end *end = arg;
	struct procs_buf there = procs_get_buf(!end->me, K_BUF);

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_sge sge = t_sge(&end->out, 0, i == 2 ? 8 : LONG);
		struct ibv_send_wr wr = t_wr(ops[i], i, &sge, 1);

		procs_barrier();
		if (i == 2) {
			wr.wr.atomic.remote_addr = there.addr;
			wr.wr.atomic.rkey = there.rkey;
			wr.wr.atomic.compare_add = 1;
		} else {
			wr.wr.rdma.remote_addr = there.addr;
			wr.wr.rdma.rkey = there.rkey;
		}
		t_post(end->rc, &wr);
		t_done(end->rc->scq, i, done[i]);
	}
}

static void datagrams(void *arg)
{
	struct end *end = arg;
	struct ibv_sge in = t_sge(&end->in, 0, 2048 + T_GRH), out = t_sge(&end->out, 0, 2048);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 5, &out, 1);
	struct t_addr to = procs_get_addr(!end->me, K_UD);

	end->ah = t_ah(end->dev, &to, true);
	wr.wr.ud.ah = end->ah;
	wr.wr.ud.remote_qpn = to.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	memset(end->out.addr, (int)end->me, 2048);
	t_recv(end->ud, 5, &in, 1);
	t_ok(ibv_req_notify_cq(end->cq, 0));
	procs_barrier();
	t_post(end->ud, &wr);
	t_done(end->ud->scq, 5, IBV_WC_SEND);
	take_event(end);
	t_done(end->cq, 5, IBV_WC_RECV);
	t_check_byte(end->in.addr + T_GRH, 2048, !end->me);
}

static void resize(void *arg)
{
	struct end *end = arg;

	t_ok(ibv_resize_cq(end->cq, 1000));
	send_recv(end);
}

/* Registers more memory than is allowed, of which the library says something. */
static void refused(void *arg)
{
	struct end *end = arg;
	char *memory = mmap(NULL, LIMIT + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	t_holds(memory != MAP_FAILED);
	t_null(ibv_reg_mr(end->dev->pd, memory, LIMIT + 4096, 0), ENOMEM);
	munmap(memory, LIMIT + 4096);
}

static void close_end(void *arg)
{
	struct end *end = arg;

	procs_barrier();
	t_ok(ibv_destroy_ah(end->ah));
	t_qp_free(end->ud);
	t_qp_free(end->rc);
	t_ok(ibv_destroy_srq(end->srq));
	t_ok(ibv_destroy_cq(end->cq));
	t_ok(ibv_destroy_comp_channel(end->channel));
	t_buf_free(&end->in);
	t_buf_free(&end->out);
	t_close(end->dev);
}

static void needs(const char *what, void (*run)(void *arg), struct end *end)
{
	t_needs_stack(what, (size_t)PTHREAD_STACK_MIN - (trapped ? 0 : ABOVE), run, end);
}

static void child(unsigned me, void *arg)
{
	struct end end = {.me = me};
	struct t_caught caught;
	const char *said;

	(void)arg;
	if (small_default) {
		pthread_attr_t attr;

		t_ok(pthread_attr_init(&attr));
		t_ok(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
		t_ok(pthread_setattr_default_np(&attr));
		t_ok(pthread_attr_destroy(&attr));
	}
	needs("opening", open_end, &end);
	needs("sends", send_recv, &end);
	needs("messages of many pieces", pieces, &end);
	needs("one-sided operations", one_sided, &end);
	needs("datagrams", datagrams, &end);
	needs("resizing", resize, &end);
	t_catch(&caught);
	needs("a sentence", refused, &end);
	said = t_caught_end(&caught);
	t_true(strstr(said, "memlock"), "the library says: %s", said);
	needs("closing", close_end, &end);
}

static void test_all(void **state)
{
	(void)state;
	procs_run(2, two_nodes, child, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

	small_default = argc > 1 && !strcmp(argv[1], "default");
	trapped = argc > 1 && !strcmp(argv[1], "trap");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
