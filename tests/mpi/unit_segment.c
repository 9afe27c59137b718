/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared memory of coll/tupleq: a process that attaches a segment by its name gets that
 * segment, or none. */
#include "../softhca/check.h"
#include "coll/segment.h"

enum { NUMBER = 7 };

static const struct mca_coll_tupleq_shape shape = {
	.nslots = 2, .ntree = 1, .limit = TUPLEQ_LINE, .nlocal = 3};

static void attached_by_name(void **state)
{
	struct mca_coll_tupleq_segment *own = NULL, *other = NULL;
	uint64_t name = 0;

	(void)state;
	t_ok(mca_coll_tupleq_segment_create(&shape, NUMBER, &name, &own));
	t_eq(own->release.word, NUMBER);
	t_eq(mca_coll_tupleq_entered(own, &shape, 2)->word, NUMBER);
	t_eq(own->failed, 0);
	t_ok(mca_coll_tupleq_segment_attach(&shape, name, &other));
	t_holds(other != own);
	memcpy(mca_coll_tupleq_result(own, &shape, 1), "data", 5);
	t_str_eq(mca_coll_tupleq_result(other, &shape, 1), "data");
	mca_coll_tupleq_segment_detach(other);
	mca_coll_tupleq_segment_detach(own);
	/* The last process that detaches a segment removes it. */
	t_true(mca_coll_tupleq_segment_attach(&shape, name, &other) != 0, "the segment is left");
}

/* Whatever the number of messages, what a process polls has a cache line of its own. */
static void lines_are_aligned(void **state)
{
	struct mca_coll_tupleq_shape odd = shape;

	(void)state;
	for (odd.ntree = 1; odd.ntree <= 4; odd.ntree++)
		for (odd.limit = TUPLEQ_LINE; odd.limit <= 64 * TUPLEQ_LINE; odd.limit *= 2) {
			t_eq(mca_coll_tupleq_message_offset(&odd, 1, 0) % TUPLEQ_LINE, 0);
			t_eq(mca_coll_tupleq_result_offset(&odd, 0) % TUPLEQ_LINE, 0);
			t_eq(mca_coll_tupleq_entered_offset(&odd, 1) % TUPLEQ_LINE, 0);
			t_eq(mca_coll_tupleq_calls_offset(&odd, 1) % TUPLEQ_LINE, 0);
		}
}

static void others_are_refused(void **state)
{
	struct mca_coll_tupleq_segment *own = NULL, *other = NULL;
	struct mca_coll_tupleq_shape larger = shape;
	uint64_t name = 0;

	(void)state;
	larger.limit *= 1024;
	t_ok(mca_coll_tupleq_segment_create(&shape, NUMBER, &name, &own));
	t_rc(mca_coll_tupleq_segment_attach(&larger, name, &other), -EPERM);
	/* Another container may have given the number to another segment. */
	t_rc(mca_coll_tupleq_segment_attach(&shape, name ^ UINT64_C(1) << 40, &other), -ESTALE);
	mca_coll_tupleq_segment_detach(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attached_by_name),
		cmocka_unit_test(lines_are_aligned),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
