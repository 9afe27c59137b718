/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h - the commands that librdmacm writes to /dev/infiniband/rdma_cm
 * (<rdma/rdma_user_cm.h>).
 */
#ifndef SHCA_CM_COMMAND_H
#define SHCA_CM_COMMAND_H

#include <sys/types.h>

#include "cells.h"

/* Returns the channel behind a descriptor of this process, or -EINVAL. */
typedef int64_t shca_command_channel_fn(int fd);

/* Executes a command that was written to a channel of the calling process. Returns its length, or
 * -errno; -EAGAIN: there is no event to get. `token_was_read`: a token of the channel was read for
 * this event. Takes the lock. */
ssize_t shca_command_run(struct shca_fabric *fabric, uint32_t channel,
			 shca_command_channel_fn *channel_of, const void *command, size_t len,
			 bool token_was_read);
/* Returns true if a command asks for an event, for which it may have to wait. */
bool shca_command_gets_event(const void *command, size_t len);

#endif
