/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.h - what "softhca stat --json" says about the fabric that the caller runs in. The command is
 * $SOFTHCA_BIN, or softhca in the PATH.
 */
#ifndef T_STAT_H
#define T_STAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The parsed document; the caller drops it. Fails the test if the command fails or it doesn't
 * parse. */
json_t *stat_json(void);
/* Objects (and the process itself) that the fabric holds for that pid. */
unsigned stat_objects_of(pid_t pid);
/* Waits until nothing of that pid is left. */
void stat_await_reaped(pid_t pid);
/* Returns a counter, summed over all HCAs; fails if there is none of that name. */
uint64_t stat_counter(const char *name);

#endif
