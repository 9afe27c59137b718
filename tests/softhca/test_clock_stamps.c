/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_stamps.c - in virtual time, the wall-clock timestamp of a completion is the time at
 * which it completed, whenever it is read. Run this with --clock-cpu 1.
 */
#include <time.h>

#include "clock_time.h"

static void test_wallclock(void **state)
{
	struct t_dev *dev = *state;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev->ctx, &attr);
	struct t_spec spec = {.scq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &spec, NULL, 64);
	struct ibv_sge in = t_sge(&p.bb, 0, 8);
	struct ibv_poll_cq_attr poll = {0};
	struct timespec before, after;
	uint64_t first;

	t_recv(p.b, 1, &in, 1);
	clock_gettime(CLOCK_REALTIME, &before);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	while (ibv_start_poll(cq, &poll))
		;
	clock_gettime(CLOCK_REALTIME, &after);
	first = ibv_wc_read_completion_wallclock_ns(cq);
	t_true(first >= ns_of(&before) && first <= ns_of(&after),
	       "the date is %llu, not from %llu to %llu", (unsigned long long)first,
	       (unsigned long long)ns_of(&before), (unsigned long long)ns_of(&after));
	for (volatile unsigned i = 0; i < 1000000; i++)
		;
	t_eq(ibv_wc_read_completion_wallclock_ns(cq), first);
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wallclock, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
