/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_link_share.c - several senders share the port that their messages arrive at, on a link of 10
 * us and 1 GB/s, in virtual time that counts no computing. One process with two devices. With the
 * argument "loopback" the link has loopback=250MB/s, and that alone is tested; with "slow" it has
 * 1 B/s.
 */
#include <string.h>
#include <unistd.h>

#include "clock_time.h"

#define BYTES      100000
#define WIRE_NS    100000 /* of such a message */
#define LATENCY_NS 10000
#define CALLS_NS   2000 /* the prices of the calls of a test are less */

/* Each device has a connection to itself, and device a one to b. */
struct scene {
	struct t_dev *a, *b;
	struct t_qp *from_a, *at_b;
	struct t_pair own_a, own_b;
};

static struct scene start(void)
{
	struct scene s = {.a = t_open_at(0), .b = t_open_at(1)};

	s.from_a = t_qp(s.a, NULL);
	s.at_b = t_qp(s.b, NULL);
	t_connect(s.from_a, s.at_b, NULL);
	s.own_a = t_pair(s.a, NULL, NULL, BYTES);
	s.own_b = t_pair(s.b, NULL, NULL, BYTES);
	return s;
}

static void end(struct scene *scene)
{
	t_pair_free(&scene->own_a);
	t_pair_free(&scene->own_b);
	t_qp_free(scene->from_a);
	t_qp_free(scene->at_b);
	t_close(scene->a);
	t_close(scene->b);
}

/* Writes BYTES bytes from one buffer to the other. */
static void write_to(struct t_qp *qp, const struct t_buf *from, const struct t_buf *to)
{
	struct ibv_sge sge = t_sge(from, 0, BYTES);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)to->addr, to->mr->rkey);

	t_post(qp, &wr);
}

/* Checks that a write ends after the wire time of `messages` messages and both ways' latency. */
static void ends_after(struct t_qp *qp, uint64_t since, unsigned messages)
{
	uint64_t least = messages * WIRE_NS + 2 * LATENCY_NS, took;

	t_done(qp->scq, 1, IBV_WC_RDMA_WRITE);
	took = t_now() - since;
	t_true(took >= least && took < least + CALLS_NS, "%llu ns, not %llu",
	       (unsigned long long)took, (unsigned long long)least);
}

/* Has device a write to itself and then to b, and b to itself. */
static void write_three(const struct scene *scene)
{
	write_to(scene->own_a.a, &scene->own_a.ba, &scene->own_a.bb);
	write_to(scene->from_a, &scene->own_a.ba, &scene->own_b.bb);
	write_to(scene->own_b.a, &scene->own_b.ba, &scene->own_b.bb);
}

/* Checks that a message doesn't wait for one that was posted before but arrives later. */
static void test_earlier(void **state)
{
	struct scene s = start();
	uint64_t since = t_now();

	(void)state;
	/* The second message leaves when the first has left. */
	write_three(&s);
	ends_after(s.own_a.a, since, 1);
	ends_after(s.own_b.a, since, 1);
	ends_after(s.from_a, since, 2);
	end(&s);
}

/* Checks that the port receives no faster than its link: messages that arrive at once wait, and a
 * message that finds a part of its time taken continues afterwards. */
static void test_no_faster(void **state)
{
	struct scene s = start();
	uint64_t since = t_now();

	(void)state;
	write_to(s.from_a, &s.own_a.ba, &s.own_b.bb);
	write_to(s.own_b.a, &s.own_b.ba, &s.own_b.bb);
	ends_after(s.from_a, since, 1);
	ends_after(s.own_b.a, since, 2);
	since = t_now();
	write_to(s.own_a.a, &s.own_a.ba, &s.own_a.bb);
	write_to(s.from_a, &s.own_a.ba, &s.own_b.bb);
	usleep(WIRE_NS / 2000);
	write_to(s.own_b.a, &s.own_b.ba, &s.own_b.bb);
	ends_after(s.own_a.a, since, 1);
	ends_after(s.from_a, since, 2);
	ends_after(s.own_b.a, since + WIRE_NS / 2, 2);
	end(&s);
}

/* Checks that a message that waits for its port finds a receive that is posted before the message
 * arrives, and isn't put behind later messages. */
static void test_in_time(void **state)
{
	struct scene s = start();
	struct ibv_sge out = t_sge(&s.own_a.ba, 0, BYTES), in = t_sge(&s.own_b.bb, 0, BYTES);
	uint64_t since = t_now();

	(void)state;
	write_to(s.own_a.a, &s.own_a.ba, &s.own_a.bb);
	t_send(s.from_a, 2, out);
	write_to(s.own_a.b, &s.own_a.bb, &s.own_a.ba);
	usleep(WIRE_NS / 2000);
	t_recv(s.at_b, 3, &in, 1);
	ends_after(s.own_a.a, since, 1);
	t_done(s.at_b->rcq, 3, IBV_WC_RECV);
	t_true(t_now() - since < 2 * WIRE_NS + LATENCY_NS + CALLS_NS, "the message came late");
	t_done(s.from_a->scq, 2, IBV_WC_SEND);
	ends_after(s.own_a.b, since, 3);
	end(&s);
}

/* Checks that a message that finds no receive gives its port to the next message. */
static void test_given_back(void **state)
{
	struct scene s = start();
	struct ibv_sge out = t_sge(&s.own_a.ba, 0, BYTES), in = t_sge(&s.own_b.bb, 0, BYTES);
	uint64_t since;

	(void)state;
	t_send(s.from_a, 2, out);
	usleep(3 * LATENCY_NS / 1000);
	since = t_now();
	write_to(s.own_a.a, &s.own_a.ba, &s.own_a.bb);
	ends_after(s.own_a.a, since, 1);
	t_recv(s.at_b, 3, &in, 1);
	t_done(s.at_b->rcq, 3, IBV_WC_RECV);
	t_done(s.from_a->scq, 2, IBV_WC_SEND);
	end(&s);
}

/* Checks that a message from an adapter to itself keeps the adapter's port busy four times as long,
 * in both directions. A message to another adapter takes no longer than before, but waits for
 * messages of the adapter to itself. */
static void test_loopback(void **state)
{
	struct scene s = start();
	uint64_t since = t_now();

	(void)state;
	write_to(s.own_a.a, &s.own_a.ba, &s.own_a.bb);
	ends_after(s.own_a.a, since, 4);
	since = t_now();
	write_to(s.from_a, &s.own_a.ba, &s.own_b.bb);
	ends_after(s.from_a, since, 1);
	since = t_now();
	write_three(&s);
	ends_after(s.own_a.a, since, 4);
	ends_after(s.own_b.a, since, 4);
	ends_after(s.from_a, since, 5);
	end(&s);
}

/* Checks that messages that keep a port busy for more than a day are planned in no time, and one
 * after the other. */
static void test_slow(void **state)
{
	const uint64_t wire = BYTES * SECOND, real = real_now();
	struct scene s = start();
	uint64_t since = t_now();

	(void)state;
	write_to(s.from_a, &s.own_a.ba, &s.own_b.bb);
	write_to(s.own_b.a, &s.own_b.ba, &s.own_b.bb);
	/* Longer than a test waits for a completion. */
	sleep(BYTES);
	t_done(s.from_a->scq, 1, IBV_WC_RDMA_WRITE);
	passed_within(since, wire + 2 * LATENCY_NS, 0);
	sleep(BYTES);
	t_done(s.own_b.a->scq, 1, IBV_WC_RDMA_WRITE);
	passed_within(since, 2 * wire + 2 * LATENCY_NS, 0);
	end(&s);
	t_true(real_now() - real < 5 * SECOND, "it took much real time");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest slow[] = {cmocka_unit_test(test_slow)};
	const struct CMUnitTest loopback[] = {cmocka_unit_test(test_loopback)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_earlier),
		cmocka_unit_test(test_no_faster),
		cmocka_unit_test(test_in_time),
		cmocka_unit_test(test_given_back),
	};

	if (argc > 1 && strcmp(argv[1], "loopback") == 0)
		return cmocka_run_group_tests(loopback, NULL, NULL);
	if (argc > 1 && strcmp(argv[1], "slow") == 0)
		return cmocka_run_group_tests(slow, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
