/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control lane's messages: one struct per message, little-endian, no padding. A direct
 * message has no header, and no struct here. tq_msg_check() is the one place that looks at
 * lengths; readers need not.
 */
#ifndef TQ_PROTO_MSG_H
#define TQ_PROTO_MSG_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tupleq/match.h>

typedef struct {
	uint16_t v;
} tq_le16;
typedef struct {
	uint32_t v;
} tq_le32;
typedef struct {
	uint64_t v;
} tq_le64;

static inline tq_le16 tq_put16(uint16_t v)
{
	return (tq_le16){htole16(v)};
}
static inline tq_le32 tq_put32(uint32_t v)
{
	return (tq_le32){htole32(v)};
}
static inline tq_le64 tq_put64(uint64_t v)
{
	return (tq_le64){htole64(v)};
}
static inline uint16_t tq_get16(tq_le16 v)
{
	return le16toh(v.v);
}
static inline uint32_t tq_get32(tq_le32 v)
{
	return le32toh(v.v);
}
static inline uint64_t tq_get64(tq_le64 v)
{
	return le64toh(v.v);
}

enum tq_msg_type {
	/* sender of a tuple -> its receiver */
	TQ_MSG_EAGER = 1, /* envelope and data */
	TQ_MSG_RTS,       /* envelope; the data stay where they are */
	TQ_MSG_SWITCH,    /* later messages of the tuple are sent direct */
	TQ_MSG_HELD,      /* a held message that a RECALLED counts; comes before it */
	TQ_MSG_RECALLED,  /* answer to RECALL */
	TQ_MSG_DATA,      /* a piece of a message, answer to CTS_PIECES */
	TQ_MSG_WRITTEN,   /* the RDMA write that a CTS asked for is complete (or failed) */
	/* receiver -> sender */
	TQ_MSG_SRQN,       /* the tuple's SRQ: direct from now on */
	TQ_MSG_REFUSE,     /* no tuple queue now */
	TQ_MSG_RECALL,     /* stop sending direct */
	TQ_MSG_FIN,        /* an RTS's data were read, or are not wanted: the send is complete */
	TQ_MSG_CTS,        /* write the data there by RDMA */
	TQ_MSG_CTS_PIECES, /* send the data in pieces through the control lane */
	TQ_MSG_CTS_DIRECT, /* the receive lies in the tuple's SRQ: send the message direct */
	TQ_MSG_CTS_HELD,   /* no memory can be registered for a held message: send its data in
			      pieces */
	/* either way, between the two networks: never reach the protocol */
	TQ_MSG_CREDIT,       /* the header is all */
	TQ_MSG_BACKPRESSURE, /* stop (or resume) sending eagerly: unexpected data are at their limit
			      */
	/* sender of a tuple -> its receiver */
	TQ_MSG_NOTICE, /* a direct message is on its way: shows whether its receive is there */
	/* receiver -> sender */
	TQ_MSG_MASK, /* the bits that the tuples of a context ignore */
	TQ_MSG_TYPES
};

/* First in every message. */
struct tq_msg_hdr {
	uint8_t type;
	uint8_t flags;
	uint8_t credits[2]; /* credits for small and large control buffers, which the message gives
			       back to its addressee */
	tq_le32 conn; /* the sender's number at the addressee, given when the control lane was made
		       */
};
static_assert(sizeof(struct tq_msg_hdr) == 8, "wire format");

/* Handles, of tuples and requests, are an index and the generation of what is there; 0 = none. */

#define TQ_RTS_RKEY     1u  /* flags of an RTS: addr and rkey are valid, so the data can be read */
#define TQ_RTS_NODIRECT 2u  /* the message can't be sent direct */
#define TQ_RTS_LOCAL    4u  /* processes of the node that may read this memory can use addr */
#define TQ_RTS_AWAY     16u /* the sender may be computing: only its service thread may answer */
#define TQ_ENV_NO_QUEUE 8u  /* EAGER, RTS: the tag is used once */

/* The envelope that is matched on, and the message's numbers. */
struct tq_msg_env {
	tq_le32 ctx;
	tq_le32 source; /* the sender's rank */
	tq_le64 tag;    /* an MPI tag in its lower half, or match bits */
	tq_le32 cseq;   /* number in (context, sender, receiver) */
	tq_le32 seq; /* number in the tuple, as far as its sender remembers; SWITCH sets it anew */
	tq_le32 ask; /* the sender's handle of the tuple if it asks for the tuple's queue, else 0 */
	tq_le16 mask_life;  /* which of the masks that the receiver has named the sender uses */
	tq_le16 header_len; /* of the user's header, as in all messages of the context */
};
static_assert(sizeof(struct tq_msg_env) == 32, "wire format");

struct tq_msg_eager {
	struct tq_msg_hdr hdr;
	struct tq_msg_env env;
	/* the user's header and the data follow, to the end of the message */
};
static_assert(sizeof(struct tq_msg_eager) == 40, "wire format");

struct tq_msg_rts {
	struct tq_msg_hdr hdr;
	struct tq_msg_env env;
	tq_le64 length;
	tq_le64 addr;
	tq_le32 rkey;
	tq_le32 send_req;              /* the send's handle at its process */
	uint8_t header[TQ_HEADER_MAX]; /* the message ends behind env.header_len of these */
};
static_assert(sizeof(struct tq_msg_rts) == 112, "a small control buffer holds it");

/* Receiver to sender. */
struct tq_msg_mask {
	struct tq_msg_hdr hdr;
	tq_le32 ctx;
	tq_le16 life; /* the mask's number, not 0 */
	tq_le16 zero;
	tq_le64 mask;
};
static_assert(sizeof(struct tq_msg_mask) == 24, "wire format");

/* Sender to receiver, names the tuple by the receiver's handle. */
struct tq_msg_switch {
	struct tq_msg_hdr hdr;
	tq_le32 rx_tuple;
	tq_le32 seq; /* of the first message that may go direct */
};
static_assert(sizeof(struct tq_msg_switch) == 16, "wire format");

struct tq_msg_held {
	struct tq_msg_hdr hdr;
	tq_le32 rx_tuple;
	tq_le32 seq;
	tq_le32 cseq;
	tq_le16 header_len;
	tq_le16 zero;
	tq_le64 length;
	tq_le64 tag;
	uint8_t header[TQ_HEADER_MAX]; /* the message ends behind header_len of these */
};
static_assert(sizeof(struct tq_msg_held) == 88, "wire format");

struct tq_msg_recalled {
	struct tq_msg_hdr hdr;
	tq_le32 rx_tuple;
	tq_le32 held;      /* held messages that were named before this, in this recall */
	tq_le32 delivered; /* direct sends of this SRQ's life that have a receive (modulo 2^32) */
	tq_le32 next;      /* seq of the tuple's next message */
};
static_assert(sizeof(struct tq_msg_recalled) == 24, "wire format");

/* Follows some direct messages, which have no header. By it the receiver learns which of them
 * come before their receive. */
struct tq_msg_notice {
	struct tq_msg_hdr hdr;
	tq_le32 rx_tuple;
	tq_le32 seq; /* of the direct message */
};
/* Flag: the message has waited for long. */
#define TQ_NOTICE_LATE 1u
static_assert(sizeof(struct tq_msg_notice) == 16, "wire format");

/* Data follow, to the end of the message. */
struct tq_msg_data {
	struct tq_msg_hdr hdr;
	tq_le32 recv_req; /* the receive's handle */
	tq_le32 zero;
	tq_le64 offset;
};
static_assert(sizeof(struct tq_msg_data) == 24, "wire format");

struct tq_msg_written {
	struct tq_msg_hdr hdr;
	tq_le32 recv_req;
	tq_le32 failed; /* 0, or 1: the sender's buffer can't be registered, so pieces are to be
			   asked for */
};
static_assert(sizeof(struct tq_msg_written) == 16, "wire format");

/* Receiver to sender, names the tuple by the sender's handle. */
struct tq_msg_srqn {
	struct tq_msg_hdr hdr;
	tq_le32 tx_tuple;
	tq_le32 rx_tuple; /* the receiver's handle */
	tq_le32 srqn;
	tq_le32 zero;
	tq_le64 max_len; /* longest message that may be sent direct */
};
static_assert(sizeof(struct tq_msg_srqn) == 32, "wire format");

struct tq_msg_refuse {
	struct tq_msg_hdr hdr;
	tq_le32 tx_tuple;
	tq_le32 after; /* messages that the sender should send before it asks again */
};
static_assert(sizeof(struct tq_msg_refuse) == 16, "wire format");

struct tq_msg_recall {
	struct tq_msg_hdr hdr;
	tq_le32 tx_tuple;
	tq_le32 rx_tuple; /* the life of the tuple that is meant */
	tq_le32 position; /* the receiver's next position, relative to SWITCH's seq (signed; 0 also
			     when no SWITCH has come yet) */
	tq_le32 after;    /* as in REFUSE */
};
static_assert(sizeof(struct tq_msg_recall) == 24, "wire format");

/* FIN, CTS_DIRECT. */
struct tq_msg_answer {
	struct tq_msg_hdr hdr;
	tq_le32 send_req;
	tq_le32 zero;
};
static_assert(sizeof(struct tq_msg_answer) == 16, "wire format");

struct tq_msg_cts {
	struct tq_msg_hdr hdr;
	tq_le32 send_req;
	tq_le32 recv_req;
	tq_le64 addr;   /* CTS: where; CTS_PIECES: 0 */
	tq_le64 length; /* bytes that are wanted, from the beginning of the message */
	tq_le32 rkey;
	tq_le32 zero;
};
static_assert(sizeof(struct tq_msg_cts) == 40, "wire format");

/* Names the message by its tuple, because it was never announced. */
struct tq_msg_cts_held {
	struct tq_msg_hdr hdr;
	tq_le32 tx_tuple;
	tq_le32 seq;
	tq_le32 recv_req;
	tq_le32 zero;
	tq_le64 length; /* as in CTS */
};
static_assert(sizeof(struct tq_msg_cts_held) == 32, "wire format");

struct tq_msg_backpressure {
	struct tq_msg_hdr hdr;
	tq_le32 stop; /* 1 or 0 */
	tq_le32 zero;
};
static_assert(sizeof(struct tq_msg_backpressure) == 16, "wire format");

/* Returns a header; the network fills in the rest. */
static inline struct tq_msg_hdr tq_msg_hdr(uint8_t type, uint8_t flags)
{
	return (struct tq_msg_hdr){.type = type, .flags = flags};
}

/* Returns true if a comes before b, where numbers start anew behind 2^32 - 1. */
static inline bool tq_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* The length of the longest message without data, which a small control buffer must hold. The
 * longest message with data is an EAGER with limits.control_data_max bytes. */
#define TQ_MSG_MAX 112u

/* The length of an RTS or HELD with a header of that many bytes of the user's. */
#define TQ_MSG_RTS_LEN(header_len) ((uint32_t)(offsetof(struct tq_msg_rts, header) + (header_len)))
#define TQ_MSG_HELD_LEN(header_len) \
	((uint32_t)(offsetof(struct tq_msg_held, header) + (header_len)))

/* Returns true if messages of this type may have data. */
static inline bool tq_msg_has_data(uint8_t type)
{
	return type == TQ_MSG_EAGER || type == TQ_MSG_DATA;
}

/* Returns true if messages of this type begin with an envelope, which names their context. */
static inline bool tq_msg_has_envelope(uint8_t type)
{
	return type == TQ_MSG_EAGER || type == TQ_MSG_RTS;
}

/* Returns 0 if a message of `len` bytes is whole and of a type that exists, else -EPROTO. Says
 * nothing about what its handles name. */
int tq_msg_check(const void *msg, uint32_t len);

/* Returns the name of a type, as "RTS", for traces; never NULL. */
const char *tq_msg_name(uint8_t type);

#endif
