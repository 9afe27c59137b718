/* SPDX-License-Identifier: BSD-3-Clause */
/* Data on their way between the user's memory and the library's. */
#ifndef TQ_PROTO_BUF_H
#define TQ_PROTO_BUF_H

#include <string.h>

#include <tupleq/tupleq.h>

/* Copies `len` bytes of the user's data, from `offset` on. */
static inline void tq_buf_pack(const struct tq_buf *buf, uint64_t offset, void *to, uint64_t len)
{
	if (buf->ops)
		buf->ops->pack(buf->arg, offset, to, len);
	else if (len)
		memcpy(to, (const char *)buf->addr + offset, len);
}

/* Copies `len` bytes to the user's memory, from `offset` on. */
static inline void tq_buf_unpack(const struct tq_buf *buf, uint64_t offset, const void *from,
				 uint64_t len)
{
	if (!len)
		return;
	if (buf->ops)
		buf->ops->unpack(buf->arg, offset, from, len);
	else
		memcpy((char *)buf->addr + offset, from, len);
}

#endif
