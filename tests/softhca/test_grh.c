/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_grh.c - InfiniBand ports that require a global route in each path (IBV_QPF_GRH_REQUIRED), as
 * virtual functions may. Run with --grh-required yes.
 */
#include "check.h"
#include "device.h"

static void test_address_vectors(void **state)
{
	struct t_dev *dev = *state;
	struct ibv_ah_attr a = {.dlid = dev->port.lid, .port_num = 1};
	struct ibv_ah *ah;

	t_true(dev->port.flags & IBV_QPF_GRH_REQUIRED, "the port doesn't say so");
	t_true(!ibv_create_ah(dev->pd, &a), "an AH without a global route");
	t_eq(errno, EINVAL);
	a.is_global = 1;
	a.grh.dgid = dev->gid;
	a.grh.hop_limit = 1;
	ah = ibv_create_ah(dev->pd, &a);
	t_true(ah, "an AH with one: %s", strerror(errno));
	t_ok(ibv_destroy_ah(ah));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_address_vectors, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
