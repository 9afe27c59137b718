/* SPDX-License-Identifier: BSD-3-Clause */
/* The address that a process publishes so that others can reach it, and how to get there. */
#ifndef TQ_NET_ADDRESS_H
#define TQ_NET_ADDRESS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/adapter/verbs.h"
#include "proto/common/msg.h"

struct tq_net;

#define TQ_ADDRESS_MAGIC   0x41517554u /* "TuQA" */
#define TQ_ADDRESS_VERSION 4u          /* of the address and of all that goes over the wire */

struct tq_address {
	tq_le32 magic;
	tq_le16 version;
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint8_t mtu;        /* enum ibv_mtu */
	tq_le16 lid;
	tq_le16 pkey;
	tq_le32 ud_qpn;
	uint8_t gid[16];
	tq_le64 domain; /* names the process's XRC domain on that port */
	tq_le64 nonce;  /* random: names the endpoint */
	tq_le32 ud_qkey;
	tq_le32 zero;
	tq_le64 inbox; /* the name of its inbox (inbox.h), 0: it has none */
};
static_assert(sizeof(struct tq_address) == 64, "wire format");

/* Returns how far a RoCE port's GID reaches: more is further. A link-local one reaches its subnet
 * at most. */
int tq_gid_reach(const union ibv_gid *gid);

/* Fills in the address of this endpoint. */
void tq_address_fill(const struct tq_net *net, uint32_t ud_qpn, uint32_t ud_qkey, uint64_t nonce,
		     uint64_t inbox, struct tq_address *address);
/* Returns true if the bytes have the form of this version's addresses. */
bool tq_address_is_valid(const void *bytes, size_t len);
/* Copies an address. Returns -EPROTO if the bytes are no address of this version, -ENETUNREACH if
 * the address can't be reached from this port. */
int tq_address_check(const struct tq_net *net, const void *bytes, size_t len,
		     struct tq_address *address);
/* Fills in how to get to a port. */
void tq_address_path(const struct tq_net *net, const union ibv_gid *gid, uint16_t lid,
		     struct ibv_ah_attr *path);

#endif
