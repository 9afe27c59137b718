/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadline.c - TEST_DEADLINE in the environment is the deadline of a check, from its beginning and
 * from each t_enough() in it.
 */
#include <unistd.h>

#include "check.h"

/* Returns the rest (s) of the deadline, which ends with this. */
static int left(void)
{
	return (int)alarm(0);
}

int main(int argc, char **argv)
{
	static char deadline[] = "TEST_DEADLINE=200";

	t_true(!putenv(deadline), "no memory");
	t_init(&argc, &argv, 1);
	t_begin("the deadline of a check");
	t_true(left() > T_DEADLINE_S, "the check has the default");
	t_enough(MPI_Wtime());
	t_true(left() > T_DEADLINE_S, "t_enough() has set the default");
	t_end();
	return t_finish();
}
