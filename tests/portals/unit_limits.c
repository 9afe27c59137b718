/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of an interface. */
#include "check.h"
#include "stub.h"

#define OPTIONS (PTL_NI_MATCHING | PTL_NI_PHYSICAL)

/* Opens an interface with these limits. */
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

/* An operation that is triggered at once needs no place among those that wait. */
static void triggered_at_once(void **state)
{
	const ptl_ct_event_t one = {.success = 1};
	ptl_handle_ct_t trigger, ct;
	ptl_ct_event_t count;
	ptl_handle_ni_t ni;

	(void)state;
	t_ptl_ok(PtlInit());
	ni = open_with(2, 1);
	t_ptl_ok(PtlCTAlloc(ni, &trigger));
	t_ptl_ok(PtlCTAlloc(ni, &ct));
	t_ptl_ok(PtlTriggeredCTInc(ct, one, trigger, 1));
	t_ptl(PtlTriggeredCTInc(ct, one, trigger, 1), PTL_NO_SPACE);
	t_ptl_ok(PtlTriggeredCTInc(ct, one, trigger, 0));
	t_ptl_ok(PtlCTGet(ct, &count));
	t_eq(count.success, 1);
	t_ptl_ok(PtlNIFini(ni));
	PtlFini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_pid),
		cmocka_unit_test(triggered_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
