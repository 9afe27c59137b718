/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - the interface between the files of this folder. <infiniband/verbs.h> declares the entry
 * points that applications call (ibv_*); those that it leaves to providers are declared here.
 */
#ifndef SHCA_VERBS_H
#define SHCA_VERBS_H

/* The library is built with hidden visibility; what libibverbs declares is what it exports. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include "fabric/address.h"
#include "hca/domains.h"

/* Number of the only port. */
#define SHCA_PORT  1 /* the number of the only port */
#define SHCA_PORTS 1

/* process.c */

/* Attaches to the fabric that the environment names. Returns 1, 0 if none is named, or -errno.
 * Prints the problem to stderr, once. */
int shca_process_attach(void);
/* Counts a context that is being opened. Takes a slot of the fabric and starts the engine if
 * there is none yet. Returns 0 or -errno. */
int shca_process_enter(void);
/* Counts a context of this process as closed. */
void shca_process_leave(void);

/* device.c */

/*
 * Makes the devices of this process's node; called once, when the fabric is attached. Returns 0 or
 * -errno.
 */
int shca_devices_make(void);
/* Returns a list of them, which free() frees, and stores their number. Returns NULL without memory.
 */
struct ibv_device **shca_devices_list(int *n);
/* Returns the path of the files that describe them. */
const char *shca_devices_sysfs(void);
/* Returns the index of the device whose node below /dev/infiniband has that name, or -1. Any
 * thread, at any time. */
int shca_devices_find(const char *dev_name);

static inline struct shca_device *shca_device(struct ibv_device *dev)
{
	return (struct shca_device *)dev;
}

/* compat_cm.c */

/* Returns true if that is the path of the connection manager's device, and there is a fabric. */
bool shca_compat_cm_is(const char *path);
/* Opens it, as open() does. */
int shca_compat_cm_open(int flags);

/* query.c, port.c */
int shca_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int shca_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int shca_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t attr_size);

/* pd.c */
struct ibv_td *shca_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int shca_dealloc_td(struct ibv_td *td);
struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);

/* Gives back what the domain counts for on the device; the struct stays. */
void shca_pd_end(struct shca_pd *pd);

/* leftover.c */

/* Ends the objects that are left in a context that is being closed. */
void shca_leftover_end(struct shca_context *ctx);
/* Makes the functions in the tables of a context and its objects fail: this process must not use
 * them (any more). */
void shca_leftover_refuse(struct shca_context *ctx);
/* Makes these functions fail in a forked child, for a context of its parent, and gives up the
 * child's part in the context. */
void shca_leftover_inherit(struct shca_context *ctx);

/* Functions that ibv_devinfo and providers take from libibverbs though its public header doesn't
 * have them. */
#pragma GCC visibility push(default)
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);
const char *ibv_get_sysfs_path(void);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
#pragma GCC visibility pop

#endif
