/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that looks at the lengths of control messages, and their names. */
#include "proto/msg.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static const struct {
	const char *name;
	uint32_t len; /* of the message, or of what comes before its data */
	bool data;    /* data may follow */
} types[TQ_MSG_TYPES] = {
	[TQ_MSG_EAGER] = {"EAGER", sizeof(struct tq_msg_eager), true},
	[TQ_MSG_RTS] = {"RTS", sizeof(struct tq_msg_rts), false},
	[TQ_MSG_SWITCH] = {"SWITCH", sizeof(struct tq_msg_switch), false},
	[TQ_MSG_HELD] = {"HELD", 0, false}, /* as long as its flags say */
	[TQ_MSG_RECALLED] = {"RECALLED", sizeof(struct tq_msg_recalled), false},
	[TQ_MSG_NOTICE] = {"NOTICE", sizeof(struct tq_msg_notice), false},
	[TQ_MSG_DATA] = {"DATA", sizeof(struct tq_msg_data), true},
	[TQ_MSG_WRITTEN] = {"WRITTEN", sizeof(struct tq_msg_written), false},
	[TQ_MSG_SRQN] = {"SRQN", sizeof(struct tq_msg_srqn), false},
	[TQ_MSG_REFUSE] = {"REFUSE", sizeof(struct tq_msg_refuse), false},
	[TQ_MSG_RECALL] = {"RECALL", sizeof(struct tq_msg_recall), false},
	[TQ_MSG_FIN] = {"FIN", sizeof(struct tq_msg_answer), false},
	[TQ_MSG_CTS] = {"CTS", sizeof(struct tq_msg_cts), false},
	[TQ_MSG_CTS_PIECES] = {"CTS_PIECES", sizeof(struct tq_msg_cts), false},
	[TQ_MSG_CTS_DIRECT] = {"CTS_DIRECT", sizeof(struct tq_msg_answer), false},
	[TQ_MSG_CTS_HELD] = {"CTS_HELD", sizeof(struct tq_msg_cts_held), false},
	[TQ_MSG_CREDIT] = {"CREDIT", sizeof(struct tq_msg_hdr), false},
	[TQ_MSG_EAGER_BITS] = {"EAGER_BITS", sizeof(struct tq_msg_eager_bits), true},
	[TQ_MSG_RTS_BITS] = {"RTS_BITS", sizeof(struct tq_msg_rts_bits), false},
	[TQ_MSG_HELD_BITS] = {"HELD_BITS", sizeof(struct tq_msg_held_bits), false},
	[TQ_MSG_MASK] = {"MASK", sizeof(struct tq_msg_mask), false},
	[TQ_MSG_BACKPRESSURE] = {"BACKPRESSURE", sizeof(struct tq_msg_backpressure), false},
};

/* Returns the length of the user's header in a message that has one. */
static uint32_t header_len(const void *msg)
{
	const struct tq_msg_eager_bits *head = msg; /* an RTS_BITS begins alike */

	return tq_get16(head->env.header_len);
}

int tq_msg_check(const void *msg, uint32_t len)
{
	const struct tq_msg_hdr *hdr = msg;
	uint32_t want;

	if (len < sizeof(*hdr) || hdr->type >= TQ_MSG_TYPES || !types[hdr->type].name)
		return -EPROTO;
	want = types[hdr->type].len;
	if (hdr->type == TQ_MSG_HELD) {
		if (!hdr->flags || hdr->flags > TQ_HELD_MAX)
			return -EPROTO;
		want = TQ_MSG_HELD_LEN(hdr->flags);
	}
	if (types[hdr->type].data ? len < want : len != want)
		return -EPROTO;
	if (hdr->type == TQ_MSG_EAGER_BITS && len - want < header_len(msg))
		return -EPROTO;
	if (hdr->type == TQ_MSG_RTS_BITS && header_len(msg) > TQ_HEADER_MAX)
		return -EPROTO;
	return 0;
}

const char *tq_msg_name(uint8_t type)
{
	return type < TQ_MSG_TYPES && types[type].name ? types[type].name : "unknown";
}
