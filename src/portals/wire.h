/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers in front of messages' data, little-endian. */
#ifndef P4_WIRE_H
#define P4_WIRE_H

#include <assert.h>
#include <endian.h>
#include <stdint.h>

enum p4_op_kind { P4_PUT, P4_GET, P4_ATOMIC, P4_FETCH, P4_SWAP };

/* The most bytes of an atomic operation's data. */
#define P4_ATOMIC_MAX (1 << 16)
/* Bytes of a swap's operand, in front of the data: those of the largest datatype. */
#define P4_OPERAND 32

/* From the initiator, to a portal table entry. */
struct p4_wire_request {
	uint64_t hdr_data;
	uint64_t remote_offset;
	uint64_t rlength;
	uint64_t cookie; /* names the operation in the answer, in the initiator's byte order; 0: no
			    answer is wanted */
	uint32_t uid;
	uint32_t nid, pid; /* of the initiator */
	uint8_t kind;      /* enum p4_op_kind */
	uint8_t ack_req;
	uint8_t operation, datatype;
};
static_assert(sizeof(struct p4_wire_request) == 48, "wire format");

/* A flag of answers: the initiator posts and counts nothing for a successful operation, which the
 * answer only ends (PTL_ME_ACK_DISABLE). */
#define P4_SILENT 1u

/* The answer: an acknowledgement, or a reply with data. */
struct p4_wire_response {
	uint64_t cookie;
	uint64_t mlength;
	uint64_t offset; /* that was used */
	uint8_t fail;    /* PTL_NI_* */
	uint8_t list;
	uint8_t flags;
	uint8_t zero[5];
};
static_assert(sizeof(struct p4_wire_response) == 32, "wire format");

#endif
