/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_cm.h - what the processes of a fabric share about connections made by librdmacm.
 *
 * Each kind of object has an array of cells behind the context tables. A cell is free while its
 * first word is 0. All of it is read and written under shca_cm.lock, by any process of the fabric:
 * the process that sends a message of the connection manager also does what its receiver's kernel
 * would do with it.
 */
#ifndef SHCA_LAYOUT_CM_H
#define SHCA_LAYOUT_CM_H

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum shca_cm_kind {
	SHCA_CM_CHANNEL,
	SHCA_CM_ID,
	SHCA_CM_GROUP,
	SHCA_CM_EVENT,
	SHCA_CM_KINDS,
};

/* Numbers of cells. Choices: librdmacm looks up identifiers below 65536 only. */
#define SHCA_CM_CHANNELS 16384
#define SHCA_CM_IDS      65536
#define SHCA_CM_GROUPS   4096
#define SHCA_CM_EVENTS   131072

/* An address of family AF_IB, as <infiniband/ib.h> has it. */
#define SHCA_AF_IB 27
struct shca_cm_ib_address {
	uint16_t family;
	uint16_t pkey;
	uint32_t flow_info;
	uint8_t gid[16];
	uint64_t sid; /* big-endian, as sid_mask */
	uint64_t sid_mask;
	uint64_t scope_id;
};

union shca_cm_address {
	uint16_t family; /* 0: there is none */
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct shca_cm_ib_address ib;
};

/* An open descriptor of /dev/infiniband/rdma_cm: a FIFO with a token for each event of its list,
 * but for those at the end whose messages are still on their way, in the order in which they
 * arrive. */
struct shca_cm_channel {
	uint32_t used;
	uint32_t proc;  /* slot of its process */
	uint32_t fifo;  /* number of the event channel (event.h) */
	uint32_t first; /* event + 1, 0 = none */
	uint32_t last;  /* the last event, or one before it; counts if there is a first one */
};

/* States of an identifier: they decide on the calls that its program may make. */
enum shca_cm_state {
	SHCA_CM_IDLE,
	SHCA_CM_BOUND,
	SHCA_CM_RESOLVING,
	SHCA_CM_RESOLVED,
	SHCA_CM_ROUTING,
	SHCA_CM_ROUTED,
	SHCA_CM_CONNECT, /* has a connection, of which `link` says how far it is */
	SHCA_CM_DISCONNECT,
	SHCA_CM_LISTEN,
};

/* State of a connection at one end (IBA 12.9.7). */
enum shca_cm_link {
	SHCA_CM_LINK_NONE,
	SHCA_CM_LINK_IDLE, /* there was a connection, or a request for one */
	SHCA_CM_LINK_REQ_SENT,
	SHCA_CM_LINK_REQ_RCVD,
	SHCA_CM_LINK_REP_SENT,
	SHCA_CM_LINK_REP_RCVD,
	SHCA_CM_LINK_ESTABLISHED,
	SHCA_CM_LINK_DREQ_SENT,
	SHCA_CM_LINK_DREQ_RCVD,
	SHCA_CM_LINK_TIMEWAIT,
	SHCA_CM_LINK_SIDR_SENT, /* datagrams: asks for the number of a QP (IBA 12.11) */
	SHCA_CM_LINK_SIDR_RCVD,
};

/* An identifier (struct rdma_cm_id). */
struct shca_cm_id {
	uint32_t used;
	uint32_t proc;
	uint32_t channel;
	uint16_t node;
	uint16_t port_space;
	uint64_t uid;  /* the program's name of it; 0: a request that it hasn't accepted yet */
	uint8_t state; /* shca_cm_state */
	uint8_t link;  /* shca_cm_link */
	uint8_t qp_type;
	bool reuse_address;
	bool own_family_only;
	bool unanswered; /* at `deadline` it gives up a question about an address or a route */
	uint8_t tos;
	uint8_t ack_timeout; /* 0: from the path */
	uint8_t retries;     /* messages that are still sent again */
	union shca_cm_address source;
	union shca_cm_address destination;
	uint16_t port; /* by which it is bound, 0: it isn't */
	uint16_t port_kind;
	uint32_t hca;      /* + 1, 0: any */
	uint32_t dest_hca; /* + 1 */
	uint32_t peer;     /* identifier at the other end + 1, 0 = none */
	uint32_t listener; /* of a request that the program hasn't got yet: + 1 */
	uint32_t backlog;  /* requests that may still wait for the program */
	uint32_t events_reported;
	uint64_t deadline; /* 0 = none */
	uint32_t psn;      /* of the first packet that this end receives */
	uint32_t remote_psn;
	uint32_t remote_qpn;
	uint32_t qkey;
	/* Attributes of the QP of this end, as request and answer say. */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	struct rdma_ucm_conn_param param; /* what this end has sent */
	struct rdma_ucm_ece ece;
};

/* A membership in a multicast group. */
struct shca_cm_group {
	uint32_t used;
	uint32_t id;
	uint64_t uid;
	uint32_t events_reported;
	uint8_t gid[16];
};

struct shca_cm_event {
	uint32_t used;
	uint32_t next;    /* event + 1 */
	uint32_t id;      /* the identifier that it is reported to */
	uint32_t group;   /* membership + 1 */
	uint32_t request; /* identifier of a connection request + 1 */
	/* When the message that it reports arrives (ns): until then the program doesn't see the
	 * event. 0: the event has a token. */
	uint64_t arrives_at;
	struct rdma_ucm_event_resp resp;
};

/* Return the bytes of a cell of that kind, and how many have addresses. */
static inline uint32_t shca_cm_cell_size(enum shca_cm_kind kind)
{
	static const uint32_t sizes[SHCA_CM_KINDS] = {
		[SHCA_CM_CHANNEL] = sizeof(struct shca_cm_channel),
		[SHCA_CM_ID] = sizeof(struct shca_cm_id),
		[SHCA_CM_GROUP] = sizeof(struct shca_cm_group),
		[SHCA_CM_EVENT] = sizeof(struct shca_cm_event),
	};

	return sizes[kind];
}
static inline uint32_t shca_cm_cell_count(enum shca_cm_kind kind)
{
	static const uint32_t counts[SHCA_CM_KINDS] = {
		[SHCA_CM_CHANNEL] = SHCA_CM_CHANNELS,
		[SHCA_CM_ID] = SHCA_CM_IDS,
		[SHCA_CM_GROUP] = SHCA_CM_GROUPS,
		[SHCA_CM_EVENT] = SHCA_CM_EVENTS,
	};

	return counts[kind];
}

/* The cells of a kind. */
struct shca_cm_pool {
	uint64_t offset; /* from the start of the file */
	uint32_t high;   /* cells below it are backed by memory */
	uint32_t hint;   /* where the next search for a free one begins */
};

struct shca_cm {
	pthread_mutex_t lock; /* robust */
	struct shca_cm_pool pools[SHCA_CM_KINDS];
	uint32_t last_port; /* the last one that was chosen for a program */
	uint32_t psns;      /* number of PSNs chosen */
};

#endif
