/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo(): what the provider offers on which ports. */
#ifndef TF_INFO_H
#define TF_INFO_H

#include <stdint.h>

#include <rdma/fabric.h>

#include "versions.h"

#define TF_FABRIC_NAME "tupleq"

/* The protocol between endpoints, this provider's own. */
#define TF_PROTOCOL         (TF_PROV_SPECIFIC | 0x7471u)
#define TF_PROTOCOL_VERSION 1

/* ---- limits ---- */

#define TF_INJECT_SIZE ((size_t)4096) /* bytes, which are copied */
/* Operations under way, unless the user asks for another limit. */
#define TF_TX_SIZE        ((size_t)65536)
#define TF_RX_SIZE        ((size_t)65536)
#define TF_MAX_SIZE       ((size_t)1 << 20)
#define TF_MAX_MESSAGE    ((size_t)1 << 62)
#define TF_MIN_MULTI_RECV ((size_t)64)

/* ---- capabilities ---- */

#define TF_RIGHTS     (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define TF_ONE_SIDED  (FI_RMA | FI_ATOMIC | TF_RIGHTS)
#define TF_MODIFIERS  (FI_SEND | FI_RECV)
#define TF_PRIMARY    (FI_MSG | FI_TAGGED | TF_ONE_SIDED | FI_DIRECTED_RECV)
#define TF_DOMAIN_CAP (FI_LOCAL_COMM | FI_REMOTE_COMM)
/* Capabilities that are reported unasked. The source of messages is looked up, and
 * events of one-sided operations are sent, only for those who ask. */
#define TF_SECONDARY (FI_MULTI_RECV | FI_FENCE | TF_DOMAIN_CAP)
#define TF_CAPS      (TF_PRIMARY | TF_MODIFIERS | TF_SECONDARY | FI_SOURCE | FI_RMA_EVENT)
#define TF_ORDER     FI_ORDER_SAS

int tf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info);
void tf_info_cleanup(void);

#endif
