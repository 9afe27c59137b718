/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.c - preparing for fork(). No memory is pinned and none is handed to a device, so
 * copy-on-write can't part a buffer from its registration, and nothing has to be prepared.
 */
#include "verbs.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
