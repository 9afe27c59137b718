/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <stdatomic.h>

/* An announcement's second word: 32 bits of the digest, the hops, of which there are at most as
 * many as a tree of 2^31 nodes has levels, and a checksum in the rest. */
#define HOPS_BITS  6
#define CHECK_BITS 26

/* Returns the checksum of an announcement to the communicator `id`. */
static uint64_t check_of(const struct mca_coll_tupleq_announcement *announcement, uint64_t id)
{
	uint64_t sum = announcement->number * UINT64_C(0x9e3779b97f4a7c15);

	sum = (sum ^ sum >> 31 ^ id) * UINT64_C(0xbf58476d1ce4e5b9);
	sum = (sum ^ sum >> 29 ^ announcement->digest ^ announcement->hops) *
	      UINT64_C(0x94d049bb133111eb);
	return sum >> (64 - CHECK_BITS);
}

uint64_t
mca_coll_tupleq_announcement_check_word(const struct mca_coll_tupleq_announcement *announcement,
					uint64_t id)
{
	return (uint64_t)announcement->digest << 32 | (uint64_t)announcement->hops << CHECK_BITS |
	       check_of(announcement, id);
}

bool mca_coll_tupleq_mailbox_take(struct mca_coll_tupleq_mailbox *mailbox, uint64_t id,
				  struct mca_coll_tupleq_announcement *announcement)
{
	uint64_t check_word =
		atomic_exchange_explicit(&mailbox->check_word, 0, memory_order_acquire);

	announcement->number = atomic_load_explicit(&mailbox->number, memory_order_relaxed);
	announcement->digest = (uint32_t)(check_word >> 32);
	announcement->hops = (unsigned)(check_word >> CHECK_BITS) & ((1u << HOPS_BITS) - 1);
	return check_word &&
	       check_word == mca_coll_tupleq_announcement_check_word(announcement, id);
}
