/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_give_back.c - a message that found no receive, and is then lost on its way, gives the port's
 * time for its unsent bytes back. One adapter whose link to itself is a tenth as fast as the
 * others, in virtual time.
 */
#include <unistd.h>

#include "inside.h"

enum {
	LEN = 1 << 20,
	LATENCY_US = 1000,
	WHOLE_NS = LEN * 10, /* time of the whole message on the link, at 100 MB/s */
};

static void test_lost_on_its_way(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	struct shca_hca *hca;
	int64_t *drop;
	uint64_t began, busy_until;

	t_inside_open();
	hca = &t_fab.hdr->hcas[0];
	drop = &t_fab.hdr->config.value[SHCA_O_FAULT_DROP];
	began = atomic_load(&t_fab.hdr->clock.now);
	t_send(p.a, 1, t_sge(&p.ba, 0, LEN));
	t_true(atomic_load(&hca->egress_free) >= began + WHOLE_NS, "the port isn't reserved");
	/* The message is looked at again when its first byte is there, and is lost then. */
	*drop = 1LL << 32;
	usleep(2 * LATENCY_US);
	*drop = 0;
	busy_until = atomic_load(&hca->egress_free);
	t_true(busy_until < began + WHOLE_NS / 2, "the port is reserved for %lld of %d us",
	       (long long)(busy_until - began) / 1000, WHOLE_NS / 1000);
	t_recv(p.b, 1, &in, 1);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_inside_close();
	t_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lost_on_its_way, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
