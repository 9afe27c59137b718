/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a receive's data come to. */
#ifndef TQ_PROTO_RECV_MEM_H
#define TQ_PROTO_RECV_MEM_H

#include "proto/common/rx_objects.h"

/* Returns the most pieces that the data of a receive in an SRQ may lie in. */
uint32_t tq_recv_mem_pieces(const struct tq_recv_req *recv);
/* Registers the user's memory for `len` bytes, in at most `pieces` pieces (0: in one). Returns
 * false if that is impossible. */
bool tq_recv_mem_register(struct tq_recv_req *recv, uint64_t len, uint32_t pieces);
/* Gets memory of the library instead; for a held message also from the reserve. Returns false if
 * there is none. */
bool tq_recv_mem_bounce(struct tq_recv_req *recv, uint64_t len, bool held);
/* Posts `len` bytes of what was got to the SRQ of the receive's tuple; as srq_post(). */
int tq_recv_mem_post(struct tq_recv_req *recv, uint64_t len);
/* Gives registration and memory back, for tq_recv_mem_release(). */
void tq_recv_mem_give_back(struct tq_recv_req *recv);
/* Gives registration and memory back, if there are any. Inline, because most messages are short and
 * need none. */
static inline void tq_recv_mem_release(struct tq_recv_req *recv)
{
	if (recv->sg.addr || recv->sg.reg || recv->pieces)
		tq_recv_mem_give_back(recv);
}

#endif
