/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between processes, out of band, on a UD QP. They get lost,
 * doubled and reordered: a process that wants an answer asks again (lane_qp.c), and one that
 * has answered gives the same answer again (target.c).
 */
#ifndef TQ_NET_OOB_H
#define TQ_NET_OOB_H

#include "base/util.h"
#include "net/adapter/address.h"
#include "net/adapter/objects.h"

/* ---- the wire format: requests for connections, their answers, and what a process says ---- */

enum tq_oob_type {
	TQ_OOB_REQ = 1, /* asks for a connection */
	TQ_OOB_REP,     /* answers a request */
	TQ_OOB_BYE,     /* says goodbye: asks to send nothing more */
	TQ_OOB_BYE_ACK, /* answers BYE: nothing more is sent */
	TQ_OOB_CUT,     /* says that the connection to the receiver has failed here, and that
			   nothing more comes; txid: the nonce of the process with whose connection
			   it failed, or 0 */
	TQ_OOB_CUT_ACK,
	TQ_OOB_ASK,  /* asks whether the process of the receiver's node whose nonce is txid has died
		      */
	TQ_OOB_FATE, /* answers ASK; status: OK, or GONE */
	TQ_OOB_WAKE, /* wakes the receiver for what is in a ring, or for room there */
	TQ_OOB_LOOK_UP,  /* asks a process that is known by its port and UD QP for its address */
	TQ_OOB_LOOKED_UP /* answers LOOK_UP */
};

enum tq_oob_status {
	TQ_OOB_OK,
	TQ_OOB_WAIT, /* the answerer doesn't know the requester yet, and will answer when it does */
	TQ_OOB_GONE, /* the TGT QP, or the process, that was named is no longer there */
	TQ_OOB_ERROR /* see error */
};

/* The purposes of lanes, which requests name. */
enum tq_lane_kind { TQ_LANE_CONTROL, TQ_LANE_BULK, TQ_LANE_HOLD, TQ_LANE_KINDS };

/* RDMA reads and atomic operations that a QP has under way at most: what adapters offer. */
#define TQ_RD_ATOMIC_MAX 16

struct tq_oob_hdr {
	tq_le32 magic; /* TQ_ADDRESS_MAGIC, TQ_ADDRESS_VERSION */
	tq_le16 version;
	uint8_t type;
	uint8_t status; /* REP, FATE */
	tq_le64 to;     /* the receiver's nonce; 0 with LOOK_UP and LOOKED_UP */
	tq_le64 from;   /* the sender's nonce */
	tq_le64 txid;   /* the requester's number of the request */
};
static_assert(sizeof(struct tq_oob_hdr) == 32, "wire format");

struct tq_oob_req {
	struct tq_oob_hdr hdr;
	struct tq_address address; /* of the requester */
	uint8_t kind;              /* enum tq_lane_kind */
	uint8_t mtu;               /* of the path */
	uint8_t rd_atomic;         /* RDMA reads that the INI QP will have under way */
	uint8_t ring;              /* control lane: 1, or 0: the requester can use no ring */
	tq_le32 ini_qpn;
	tq_le32 psn;
	tq_le32 tgt_qpn; /* the TGT QP to open; 0: make one */
};
static_assert(sizeof(struct tq_oob_req) == 112, "wire format");

struct tq_oob_look_up {
	struct tq_oob_hdr hdr;
	struct tq_address address; /* of the sender */
};
static_assert(sizeof(struct tq_oob_look_up) == 96, "wire format");

struct tq_oob_rep {
	struct tq_oob_hdr hdr;
	tq_le32 tgt_qpn;
	uint8_t rd_atomic; /* RDMA reads that the TGT QP takes */
	uint8_t zero[3];
	tq_le32 error; /* errno, with TQ_OOB_ERROR */
	/* Fields of control lanes: */
	tq_le32 conn; /* the requester's number */
	tq_le32 srqn[TQ_CLASSES];
	tq_le32 size[TQ_CLASSES];
	tq_le32 credits[TQ_CLASSES]; /* 0: messages go through a ring */
	tq_le32 ring;                /* the ring's number, plus 1; 0: none */
	tq_le32 ring_size;
};
static_assert(sizeof(struct tq_oob_rep) == 80, "wire format");

/* The longest time (ns) between two sendings of a datagram that is repeated. */
#define TQ_OOB_MAX_BACKOFF (320 * TQ_MS)

/* Handles a datagram, which is whole and for this endpoint. */
typedef void tq_oob_handler(struct tq_net *net, const struct tq_oob_hdr *datagram);

int tq_oob_open(struct tq_net *net, uint64_t nonce, tq_oob_handler *handler);
void tq_oob_close(struct tq_net *net);
/* Gives the number and the key of the UD QP, for the address. */
void tq_oob_names(const struct tq_net *net, uint32_t *qpn, uint32_t *qkey);

/* Returns the header of a datagram to `link`, with the rest of it zero. */
struct tq_oob_hdr tq_oob_hdr(const struct tq_net *net, const struct tq_link *link,
			     enum tq_oob_type type, uint64_t txid);
/* Returns the header of a datagram to a process whose nonce isn't known. */
struct tq_oob_hdr tq_oob_stranger(const struct tq_net *net, enum tq_oob_type type);
/* Sends a datagram once, which may get lost. Returns false if too many are under way to send this
 * one. True says nothing of its arrival: a datagram that can't be posted counts as lost. */
bool tq_oob_send(struct tq_net *net, const struct tq_link *link, const void *datagram, size_t len);
/* Sends a datagram to a UD QP, as tq_oob_send() does. */
bool tq_oob_send_to(struct tq_net *net, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		    const void *datagram, size_t len);
/* Wakes the link's process, if its service thread sleeps, so that it looks at its inbox and its
 * outboxes. */
void tq_oob_wake(struct tq_net *net, const struct tq_link *link);
/* Returns the time (ns) after which a datagram is repeated again that was repeated after `backoff`.
 */
static inline uint64_t tq_oob_next_backoff(uint64_t backoff)
{
	return backoff < TQ_OOB_MAX_BACKOFF / 2 ? 2 * backoff : TQ_OOB_MAX_BACKOFF;
}
/* Returns true if no datagram is under way from here, or the network is broken. */
bool tq_oob_is_idle(const struct tq_net *net);

#endif
