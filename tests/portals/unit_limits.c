/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of an interface. */
#include "check.h"
#include "stub.h"

#define OPTIONS (PTL_NI_MATCHING | PTL_NI_PHYSICAL)

/* Opens an interface for so many counting events and triggered operations. */
static ptl_handle_ni_t open_with(int cts, int triggered_ops)
{
	const ptl_ni_limits_t desired = {.max_cts = cts, .max_triggered_ops = triggered_ops};
	ptl_ni_limits_t actual;
	ptl_handle_ni_t ni;

	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, OPTIONS, PTL_PID_ANY, &desired, &actual, &ni));
	t_eq(actual.max_cts, cts);
	t_eq(actual.max_triggered_ops, triggered_ops);
	return ni;
}

/* A call that is refused opens nothing: the next one sets the limits. */
static void refused_pid(void **state)
{
	const ptl_ni_limits_t desired = {.max_cts = 1};
	ptl_handle_ni_t ni;

	(void)state;
	t_ptl_ok(PtlInit());
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, OPTIONS, 5, &desired, NULL, &ni), PTL_PID_IN_USE);
	t_ptl_ok(PtlNIFini(open_with(2, 2)));
	PtlFini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
