/* SPDX-License-Identifier: BSD-3-Clause */
/* played.c - see played.h. */
#include "played.h"

#include <errno.h>
#include <stdlib.h>

#include <tupleq/tupleq.h>

struct tq_params {
	int none;
};

struct tq_locator played_locator(int process)
{
	return (struct tq_locator){.port = 100 + (uint32_t)process,
				   .number = 200 + (uint32_t)process};
}

struct tq_params *tq_params_new(void)
{
	return calloc(1, sizeof(struct tq_params));
}

void tq_params_free(struct tq_params *params)
{
	free(params);
}

int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size)
{
	(void)params;
	(void)name;
	(void)value;
	(void)why;
	(void)size;
	return -EINVAL;
}

const struct tq_counter_desc *tq_counter_desc(unsigned i)
{
	(void)i;
	return NULL;
}

uint64_t tq_counter(const struct tq_ep *ep, unsigned i)
{
	(void)ep;
	return i;
}

const char *tq_device_text(const struct tq_ep *ep)
{
	(void)ep;
	return "a device";
}

int tq_thread_progress(struct tq_ep *ep, enum tq_thread_duty duty)
{
	(void)ep;
	return duty ? -ENOTSUP : 0;
}

int tq_locator(const struct tq_ep *ep, struct tq_locator *locator)
{
	(void)ep;
	*locator = played_locator(0);
	return 0;
}

int tq_peer_error(struct tq_peer *peer)
{
	(void)peer;
	return 0;
}
