/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the options of a fabric, parsed once by the launcher and kept in shared memory.
 */
#ifndef SHCA_OPTIONS_H
#define SHCA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum shca_opt_type {
	SHCA_OPT_BOOL,
	SHCA_OPT_INT,
	SHCA_OPT_SIZE,
	SHCA_OPT_TIME,
	SHCA_OPT_RATE,
	SHCA_OPT_FACTOR,
	SHCA_OPT_CHOICE,
	SHCA_OPT_TEXT,
};

enum shca_opt {
#define GROUP(title)
#define OPT(id, name, type, def, min, max, unit, help) SHCA_O_##id,
#include "options.def"
#undef OPT
#undef GROUP
	SHCA_O_COUNT,
};

/* Indices of CHOICE values that the code uses. */
enum { SHCA_LINK_INFINIBAND, SHCA_LINK_ETHERNET };
enum { SHCA_ODP_OFF, SHCA_ODP_EXPLICIT, SHCA_ODP_IMPLICIT };
enum { SHCA_CQ_ARM_PENDING, SHCA_CQ_ARM_NEW };
enum { SHCA_TGT_DOMAIN, SHCA_TGT_OPEN };
enum { SHCA_CLOCK_REAL, SHCA_CLOCK_VIRTUAL };
enum { SHCA_TSC_AUTO, SHCA_TSC_REAL, SHCA_TSC_TRAP };
enum { SHCA_COPY_AUTO, SHCA_COPY_VM, SHCA_COPY_DOUBLE };

/* Limits of registered memory; KERNEL: the limit that the kernel applies. */
enum { SHCA_MEMLOCK_KERNEL, SHCA_MEMLOCK_UNLIMITED, SHCA_MEMLOCK_BYTES };

#define SHCA_OPT_TEXT_LEN 128

struct shca_config {
	int64_t value[SHCA_O_COUNT];                /* values of every type but TEXT */
	char text[SHCA_O_COUNT][SHCA_OPT_TEXT_LEN]; /* as given */
	/* derived from TEXT options */
	uint64_t memlock_mode;  /* SHCA_MEMLOCK_* */
	uint64_t memlock_bytes; /* SHCA_MEMLOCK_BYTES: the limit */
	uint64_t link_on;       /* 0 = no link model */
	uint64_t link_latency_ns;
	uint64_t link_bytes_per_sec;     /* 0 = unlimited */
	uint64_t link_msgs_per_sec;      /* 0 = unlimited */
	uint64_t loopback_bytes_per_sec; /* from an adapter to itself; 0 = unlimited */
	uint32_t npkeys;
	uint16_t pkeys[128];
};

struct shca_opt_desc {
	const char *name;
	enum shca_opt_type type;
	const char *def;
	int64_t min, max;
	const char *unit; /* CHOICE: the choices, as "a|b" */
	const char *help;
	const char *group; /* title, set on the first option of a group, else NULL */
	bool adapter;      /* describes an adapter: a profile may set the option */
};
extern const struct shca_opt_desc shca_opts[SHCA_O_COUNT];

/* The speed of a port's four lanes. */
struct shca_port_speed {
	uint8_t code;     /* of a lane (IBA 14.2.5.6) */
	const char *text; /* as the kernel says it in sysfs */
	uint64_t bytes_per_sec;
};
/* Returns the slowest speed that carries the bandwidth of the link model; without one, EDR. */
const struct shca_port_speed *shca_config_port_speed(const struct shca_config *config);
/* Returns how long (ns) a message keeps a port of the link model busy. `loopback`: it goes from an
 * adapter to itself. */
uint64_t shca_config_busy_time(const struct shca_config *config, bool loopback, uint64_t bytes);

/*
 * The functions below return 0 or -EINVAL. Functions with `err` store one sentence there that names
 * the option, the value, its source and what would be accepted. Not thread-safe on the same config.
 */
int shca_config_defaults(struct shca_config *config);
int shca_config_set(struct shca_config *config, enum shca_opt opt, const char *value,
		    const char *source, char *err, size_t errlen);
int shca_config_load_file(struct shca_config *config, const char *path, char *err, size_t errlen);
/* Loads a profile: a file of that form, with options that describe an adapter alone. A limit of the
 * adapter above the largest one here becomes that. */
int shca_config_load_profile(struct shca_config *config, const char *path, char *err,
			     size_t errlen);
int shca_config_load_env(struct shca_config *config, char *err, size_t errlen);
/* Checks options against each other and derives the fields above; call it last. */
int shca_config_finish(struct shca_config *config, char *err, size_t errlen);
/* Writes the value as a user would. */
void shca_config_format(const struct shca_config *config, enum shca_opt opt, char *buf, size_t len);
/* Writes the variable's name: "SOFTHCA_CQ_ARM" of "cq-arm". */
void shca_opt_env_name(enum shca_opt opt, char *buf, size_t len);
int shca_opt_find(const char *name); /* Returns the option of that name, or -1. */

/* Parse "1.3us", "10ms", "2s", "100" (ns) into ns; "4K", "1M", "unlimited" into bytes. Return 0
 * or -EINVAL. */
int shca_parse_time(const char *s, int64_t *ns);
int shca_parse_size(const char *s, int64_t *bytes);

#endif
