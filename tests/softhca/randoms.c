/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * randoms.c - prints random numbers of a thread with a clock, one line for each way to get them.
 * test_clock.sh runs it.
 */
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

int main(void)
{
	struct t_dev *dev = t_open();
	uint64_t number;

	/* The thread has a clock from here on. */
	t_qp_free(t_qp(dev, NULL));
	t_eq(getrandom(&number, sizeof(number), 0), sizeof(number));
	printf("getrandom %" PRIu64 "\n", number);
	t_ok(getentropy(&number, sizeof(number)));
	printf("getentropy %" PRIu64 "\n", number);
	t_eq(syscall(SYS_getrandom, &number, sizeof(number), 0), sizeof(number));
	printf("SYS_getrandom %" PRIu64 "\n", number);
#if __GLIBC_PREREQ(2, 36)
	printf("arc4random %" PRIu32 "\n", arc4random());
	arc4random_buf(&number, sizeof(number));
	printf("arc4random_buf %" PRIu64 "\n", number);
	number = arc4random_uniform(1000000000);
	t_true(number < 1000000000, "arc4random_uniform() returns %" PRIu64, number);
	printf("arc4random_uniform %" PRIu64 "\n", number);
#endif
	t_close(dev);
	return 0;
}
