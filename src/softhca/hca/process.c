/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.c - the one variable that says who the calling process is; verbs/process.c fills it in.
 */
#include "process.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "context.h"

struct shca_process shca_self = {.slot = SHCA_NO_PROC, .fork_count = SHCA_CLOSED + 1};

bool shca_may(unsigned capability)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};

	return !syscall(SYS_capget, &head, data) &&
	       (data[capability / 32].effective & (1u << capability % 32));
}
