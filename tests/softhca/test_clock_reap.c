/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_reap.c - an event that the launcher's monitor sends on behalf of a dead process wakes
 * a thread in virtual time, although the monitor has no turn. Run this with --cq-arm new.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include "procs.h"

enum { K_QP = 0, K_SENT = 8, K_KILL };

/* The channel for which the next poll() by the library reports no event. */
static _Atomic int blind_fd = -1;

/* Replaces poll() for softhca's library, which polls a channel before it waits for an event. If
 * there is no event, has the other child killed, waits for the event and still reports none. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	static int (*next)(struct pollfd * fds, nfds_t count, int ms);
	int rc;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "poll");
	rc = next(fds, count, ms);
	if (rc || count != 1 || fds->fd != blind_fd)
		return rc;
	blind_fd = -1;
	procs_put(K_KILL, 1);
	while (!next(fds, 1, 0))
		;
	fds->revents = 0;
	return 0;
}

/* Waits for an event of a CQ that holds a completion of a process which dies. */
static void wait_for_event(struct t_dev *dev)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev->ctx);
	struct t_spec spec = {.rcq = ibv_create_cq(dev->ctx, 16, NULL, channel, 0)};
	struct t_qp *qp = t_qp(dev, &spec);
	struct t_buf b = t_buf(dev, 64);
	struct ibv_sge in = t_sge(&b, 0, 64);
	struct ibv_cq *cq;
	void *context;

	procs_connect(qp, 1, K_QP, NULL);
	t_recv(qp, 1, &in, 1);
	procs_barrier();
	procs_get(1, K_SENT);
	t_ok(ibv_req_notify_cq(qp->rcq, 0));
	blind_fd = channel->fd;
	t_ok(ibv_get_cq_event(channel, &cq, &context));
	t_true(cq == qp->rcq, "the event is of another CQ");
	ibv_ack_cq_events(cq, 1);
	t_next(cq, 1, IBV_WC_SUCCESS);
	t_qp_free(qp);
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_destroy_comp_channel(channel));
	t_buf_free(&b);
}

static void send_and_die(struct t_dev *dev)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 64);

	procs_connect(qp, 0, K_QP, NULL);
	procs_barrier();
	t_send(qp, 1, t_sge(&b, 0, 64));
	t_next(qp->scq, 1, IBV_WC_SUCCESS);
	procs_put(K_SENT, 1);
	pause();
}

static void both(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();

	(void)arg;
	if (me)
		send_and_die(dev);
	wait_for_event(dev);
	t_close(dev);
}

static void test_event_of_dead(void **state)
{
	(void)state;
	procs_start(2, NULL, both, NULL);
	procs_get(0, K_KILL);
	procs_kill(1);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_event_of_dead)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
