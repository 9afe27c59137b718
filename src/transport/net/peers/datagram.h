/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire format of datagrams between processes: requests for connections, their answers, and what
 * a process says of the end of a connection or of itself.
 */
#ifndef TQ_NET_DATAGRAM_H
#define TQ_NET_DATAGRAM_H

#include "net/adapter/address.h"
#include "net/adapter/objects.h"

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

#endif
