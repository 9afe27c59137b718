/* SPDX-License-Identifier: BSD-3-Clause */
/* The device that TEST_DEVICE names, for tests on one adapter, which is softhca's or a real one. */
#ifndef TQ_TEST_ON_DEVICE_H
#define TQ_TEST_ON_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include <tupleq/tupleq.h>

/* Restricts the choice of libtupleq to that device. */
static inline void on_device_set(struct tq_params *params)
{
	const char *name = getenv("TEST_DEVICE");
	char why[200];

	if (!name || !tq_param_set(params, "if_include", name, why, sizeof(why)))
		return;
	fprintf(stderr, "TEST_DEVICE: %s\n", why);
	exit(1);
}

#endif
