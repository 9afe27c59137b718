/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.h - reads the output of "softhca stat --json" about the caller's fabric. The command is
 * $SOFTHCA_BIN, or softhca in PATH.
 */
#ifndef T_STAT_H
#define T_STAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the parsed document, for the caller to drop. Fails the test if the command fails or the
 * document doesn't parse. */
json_t *stat_json(void);
/* Returns how many objects the fabric holds for that pid, the process itself included. */
unsigned stat_objects_of(pid_t pid);
/* Waits until no object of that pid is left. */
void stat_await_reaped(pid_t pid);
/* Returns a counter, summed over all HCAs; fails if there is none of that name. */
uint64_t stat_counter(const char *name);

#endif
