/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared memory of coll/tupleq: a process that attaches a segment by its name gets that
 * segment, or none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coll/segment.h"

enum { NUMBER = 7 };

static const struct mca_coll_tupleq_shape shape = {
	.nslots = 2, .ntree = 1, .limit = TUPLEQ_LINE, .nlocal = 3};
static int failed;

static void check(const char *name, int ok)
{
	printf("%sok segment: %s\n", ok ? "" : "not ", name);
	failed |= !ok;
}

int main(void)
{
	struct mca_coll_tupleq_segment *own = NULL, *other = NULL;
	struct mca_coll_tupleq_shape larger = shape;
	uint64_t name = 0;
	int rc;

	larger.limit *= 1024;
	rc = mca_coll_tupleq_segment_create(&shape, NUMBER, &name, &own);
	check("is made", !rc);
	if (rc)
		return 1;
	check("has the number in its lines",
	      own->release.word == NUMBER &&
		      mca_coll_tupleq_entered(own, &shape, 2)->word == NUMBER && !own->failed.word);
	check("is attached by its name", !mca_coll_tupleq_segment_attach(&shape, name, &other));
	memcpy(mca_coll_tupleq_result(own, &shape, 1), "data", 5);
	check("is the same there",
	      other != own && !strcmp(mca_coll_tupleq_result(other, &shape, 1), "data"));
	mca_coll_tupleq_segment_detach(other);
	check("of another shape is refused",
	      mca_coll_tupleq_segment_attach(&larger, name, &other) == -EPERM);
	/* Another container may have given the number to another segment. */
	check("of the same number and another name is refused",
	      mca_coll_tupleq_segment_attach(&shape, name ^ UINT64_C(1) << 40, &other) == -ESTALE);
	mca_coll_tupleq_segment_detach(own);
	check("goes with the last that has it",
	      mca_coll_tupleq_segment_attach(&shape, name, &other) != 0);
	return failed;
}
