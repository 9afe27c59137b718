/* SPDX-License-Identifier: BSD-3-Clause */
/* Host names and services, for callers that know endpoints only by these. */
#ifndef TF_SERVICE_H
#define TF_SERVICE_H

#include "addr.h"

/*
 * Sets *addr to what a host's name and a service stand for: the address that the name is the text
 * of (tf_addr_print()), or one of TF_ADDR_SERVICE. `node` NULL: this host;
 * `service` NULL: none. FI_SOURCE: an address of this process; FI_NUMERICHOST: the name isn't
 * looked up. Returns 0 or -FI_ENODATA.
 */
int tf_service_resolve(const char *node, const char *service, uint64_t flags, struct tf_addr *addr);
/* Writes the name of a host or service with its number at the end increased by `add`. Returns false
 * if it has none. */
bool tf_service_add(const char *name, size_t add, char *to, size_t size);

#endif
