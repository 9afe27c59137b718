/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.c - the one variable that says who the calling process is; verbs/process.c fills it in.
 */
#include "process.h"

#include "context.h"

struct shca_process shca_self = {.slot = SHCA_NO_PROC, .fork_count = SHCA_CLOSED + 1};
