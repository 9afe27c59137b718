/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between processes, out of band: requests for connections and their answers, on a UD QP.
 * They get lost, doubled and reordered; who wants an answer asks again (lane_connect.c), and who
 * has answered gives the same answer again (target.c).
 */
#ifndef TQ_NET_OOB_H
#define TQ_NET_OOB_H

#include "net/address.h"

enum tq_oob_type {
	TQ_OOB_REQ = 1, /* may I connect? */
	TQ_OOB_REP,
	TQ_OOB_BYE, /* I am closing: send me nothing more */
	TQ_OOB_BYE_ACK,
	TQ_OOB_CUT, /* the connection to you has failed here: expect nothing more; txid: the nonce
		       of a process with whose connection it failed, or 0 */
	TQ_OOB_CUT_ACK,
	TQ_OOB_ASK, /* is the process of your node whose nonce is txid still there? */
	TQ_OOB_TOLD /* status: OK, or GONE */
};

enum tq_oob_status {
	TQ_OOB_OK,
	TQ_OOB_WAIT, /* the answerer does not know the requester yet: it will be told */
	TQ_OOB_GONE, /* the TGT QP, or the process, that was named is no longer there */
	TQ_OOB_ERROR /* see error */
};

struct tq_oob_hdr {
	tq_le32 magic; /* TQ_ADDRESS_MAGIC, TQ_ADDRESS_VERSION */
	tq_le16 version;
	uint8_t type;
	uint8_t status; /* REP, TOLD */
	tq_le64 to;     /* nonces */
	tq_le64 from;
	tq_le64 txid; /* the requester's number of the request */
};
static_assert(sizeof(struct tq_oob_hdr) == 32, "wire format");

struct tq_oob_req {
	struct tq_oob_hdr hdr;
	struct tq_address address; /* of the requester */
	uint8_t kind;              /* enum tq_lane_kind */
	uint8_t mtu;               /* of the path */
	uint8_t rd_atomic;         /* RDMA reads that the INI QP will have under way */
	uint8_t zero;
	tq_le32 ini_qpn;
	tq_le32 psn;
	tq_le32 tgt_qpn; /* the TGT QP to open; 0: make one */
};
static_assert(sizeof(struct tq_oob_req) == 104, "wire format");

struct tq_oob_rep {
	struct tq_oob_hdr hdr;
	tq_le32 tgt_qpn;
	uint8_t rd_atomic; /* that the TGT QP takes */
	uint8_t zero[3];
	tq_le32 error; /* errno, with TQ_OOB_ERROR */
	/* Of control lanes: */
	tq_le32 conn; /* the requester's number */
	tq_le32 srqn[TQ_CLASSES];
	tq_le32 size[TQ_CLASSES];
	tq_le32 credits[TQ_CLASSES];
};
static_assert(sizeof(struct tq_oob_rep) == 72, "wire format");

int tq_oob_open(struct tq_net *net, uint64_t nonce);
void tq_oob_close(struct tq_net *net);
void tq_oob_names(const struct tq_net *net, uint32_t *qpn, uint32_t *qkey);
/* The header of a datagram to `link`, zero else. */
struct tq_oob_hdr tq_oob_hdr(const struct tq_net *net, const struct tq_link *link,
			     enum tq_oob_type type, uint64_t txid);
/* Sends it once. It may get lost; false: it isn't sent, as too many are under way. */
bool tq_oob_send(struct tq_net *net, const struct tq_link *link, const void *datagram, size_t len);
/* Have all been sent? */
bool tq_oob_idle(const struct tq_net *net);

/* 64 random bits. */
uint64_t tq_random(void);

#endif
