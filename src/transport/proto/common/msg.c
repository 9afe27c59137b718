/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that looks at the lengths of control messages, and their names. */
#include "proto/common/msg.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static const struct {
	const char *name;
	uint32_t len; /* of the message, or of what comes before its header and data */
	bool data;    /* data may follow */
	bool header;  /* a header of the user's may follow, before the data */
} types[TQ_MSG_TYPES] = {
	[TQ_MSG_EAGER] = {"EAGER", sizeof(struct tq_msg_eager), true, true},
	[TQ_MSG_RTS] = {"RTS", TQ_MSG_RTS_LEN(0), false, true},
	[TQ_MSG_SWITCH] = {"SWITCH", sizeof(struct tq_msg_switch), false, false},
	[TQ_MSG_HELD] = {"HELD", TQ_MSG_HELD_LEN(0), false, true},
	[TQ_MSG_RECALLED] = {"RECALLED", sizeof(struct tq_msg_recalled), false, false},
	[TQ_MSG_NOTICE] = {"NOTICE", sizeof(struct tq_msg_notice), false, false},
	[TQ_MSG_DATA] = {"DATA", sizeof(struct tq_msg_data), true, false},
	[TQ_MSG_WRITTEN] = {"WRITTEN", sizeof(struct tq_msg_written), false, false},
	[TQ_MSG_SRQN] = {"SRQN", sizeof(struct tq_msg_srqn), false, false},
	[TQ_MSG_REFUSE] = {"REFUSE", sizeof(struct tq_msg_refuse), false, false},
	[TQ_MSG_RECALL] = {"RECALL", sizeof(struct tq_msg_recall), false, false},
	[TQ_MSG_FIN] = {"FIN", sizeof(struct tq_msg_answer), false, false},
	[TQ_MSG_CTS] = {"CTS", sizeof(struct tq_msg_cts), false, false},
	[TQ_MSG_CTS_PIECES] = {"CTS_PIECES", sizeof(struct tq_msg_cts), false, false},
	[TQ_MSG_CTS_DIRECT] = {"CTS_DIRECT", sizeof(struct tq_msg_answer), false, false},
	[TQ_MSG_CTS_HELD] = {"CTS_HELD", sizeof(struct tq_msg_cts_held), false, false},
	[TQ_MSG_CREDIT] = {"CREDIT", sizeof(struct tq_msg_hdr), false, false},
	[TQ_MSG_MASK] = {"MASK", sizeof(struct tq_msg_mask), false, false},
	[TQ_MSG_BACKPRESSURE] = {"BACKPRESSURE", sizeof(struct tq_msg_backpressure), false, false},
};

/* Returns the length of the user's header in a message that may have one. */
static uint32_t header_len(const void *msg)
{
	const struct tq_msg_hdr *hdr = msg;

	if (hdr->type == TQ_MSG_HELD)
		return tq_get16(((const struct tq_msg_held *)msg)->header_len);
	return tq_get16(
		((const struct tq_msg_eager *)msg)->env.header_len); /* an RTS begins alike */
}

int tq_msg_check(const void *msg, uint32_t len)
{
	const struct tq_msg_hdr *hdr = msg;
	uint32_t want;

	if (len < sizeof(*hdr) || hdr->type >= TQ_MSG_TYPES || !types[hdr->type].name)
		return -EPROTO;
	want = types[hdr->type].len;
	if (len < want)
		return -EPROTO;
	if (types[hdr->type].header) {
		if (header_len(msg) > TQ_HEADER_MAX)
			return -EPROTO;
		want += header_len(msg);
	}
	return (types[hdr->type].data ? len < want : len != want) ? -EPROTO : 0;
}

const char *tq_msg_name(uint8_t type)
{
	return type < TQ_MSG_TYPES && types[type].name ? types[type].name : "unknown";
}
