/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options_parse.h - from text to value, one function per kind of value. None depends on the locale.
 * All return 0, or -EINVAL unless the text is one whole value that fits.
 */
#ifndef SHCA_OPTIONS_PARSE_H
#define SHCA_OPTIONS_PARSE_H

#include <sched.h>

#include "options.h"

#define SHCA_FACTOR_ONE (1LL << 20)        /* parts of the factor 1 */
#define SHCA_RATE_ONE   (INT64_C(1) << 32) /* parts of the rate 1 */

/* Parses "0.01", "1%", "1e-3" into parts per 2^32; at most 1. */
int shca_parse_rate(const char *s, int64_t *parts);
/* Parses "0.5", "2" into parts per 2^20. */
int shca_parse_factor(const char *s, int64_t *parts);
/* Parses "0xffff,0x8001": between 1 and 128 P_Keys with a nonzero base (the low 15 bits). */
int shca_parse_pkeys(const char *s, uint16_t *keys, uint32_t *n);
/* Parses "0,2-3"; the empty text gives the empty set. */
int shca_parse_cpus(const char *s, cpu_set_t *set);
/* Parses "limit", "unlimited" or a size into the memlock fields of shca_config. */
int shca_parse_memlock(const char *s, uint64_t *mode, uint64_t *bytes);

/* Values of the link model; 0 in a field = not limited. */
struct shca_link {
	uint64_t on;
	uint64_t latency_ns;
	uint64_t bytes_per_sec;
	uint64_t msgs_per_sec;
	uint64_t loopback_bytes_per_sec;
};
/*
 * Parses "off", or a list of latency=T, bandwidth=B/s, rate=N, loopback=B/s, each at most once.
 * Units are decimal, as is usual for links (GB/s = 1e9 bytes, Gbit/s = 1e9 bits), binary with an i
 * (GiB/s). If loopback is missing, the bandwidth stands for it.
 */
int shca_parse_link(const char *s, struct shca_link *link);

#endif
