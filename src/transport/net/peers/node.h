/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node: the processes behind one port of an HCA in one XRC domain, and what the lanes and links
 * to them share.
 */
#ifndef TQ_NET_NODE_H
#define TQ_NET_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "net/adapter/verbs.h"

struct tq_address;
struct tq_net;

struct tq_node {
	struct tq_node_key {
		union ibv_gid gid; /* of the port; LID-routed InfiniBand: subnet prefix and port
				      GUID as well */
		uint64_t domain;   /* its processes' tq_net.domain */
	} key;
	uint16_t lid;
	uint8_t mtu;             /* enum ibv_mtu */
	struct ibv_ah *ah;       /* for datagrams; NULL: not made yet */
	int ah_error;            /* errno of the last attempt */
	uint64_t ah_due;         /* ns: no attempt before */
	struct tq_lane *control; /* NULL: not asked for yet */
	struct tq_lane *bulk;    /* NULL: not asked for yet */
	struct tq_lane *hold;    /* list */
	uint32_t nhold;
	uint32_t nlinks, nlanes;     /* the node goes with the last of them */
	struct tq_rdma_op *bulk_ops; /* rdma.c: queue of operations of which not all is posted */
	uint64_t bulk_bytes;         /* rdma.c: posted, and not complete */
	bool bulk_busy;              /* in the list tq_net.bulk_busy */
	struct tq_node *bulk_busy_next, *bulk_busy_prev;
	bool hold_full;    /* a hold lane could not be made: no more are tried */
	bool no_bulk;      /* the bulk lane could not be made: the control lane stands in */
	UT_hash_handle hh; /* tq_net.nodes */
};

/* Finds the node of an address, or makes it. NULL: no memory. */
struct tq_node *tq_node_get(struct tq_net *net, const struct tq_address *address);
/* Frees the node if no link and no lane is left there. */
void tq_node_put(struct tq_net *net, struct tq_node *node);
/* Returns the address handle for datagrams to the node; NULL: its address can't be resolved, for
 * now. */
struct ibv_ah *tq_node_ah(struct tq_net *net, struct tq_node *node);

#endif
