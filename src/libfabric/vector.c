/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Copies bytes [offset, offset + len) of the pieces to or from `flat`. */
static void copy(const struct tf_vector *vector, uint64_t offset, char *flat, size_t len,
		 bool to_pieces)
{
	for (unsigned i = 0; i < vector->n && len; i++) {
		const struct tq_piece *piece = &vector->pieces[i];
		size_t n;

		if (offset >= piece->len) {
			offset -= piece->len;
			continue;
		}
		n = piece->len - offset < len ? piece->len - offset : len;
		if (to_pieces)
			memcpy((char *)piece->addr + offset, flat, n);
		else
			memcpy(flat, (char *)piece->addr + offset, n);
		flat += n;
		len -= n;
		offset = 0;
	}
}

static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	copy(arg, offset, to, len, false);
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	copy(arg, offset, (char *)(uintptr_t)from, len, true);
}

static const struct tq_buf_ops ops = {pack, unpack};

struct tq_buf tf_vector_pieces(struct tf_vector *vector, const struct iovec *iov, size_t count)
{
	struct tq_buf buf = {0};

	vector->n = 0;
	for (size_t i = 0; i < count; i++) {
		if (!iov[i].iov_len)
			continue;
		vector->pieces[vector->n].addr = iov[i].iov_base;
		vector->pieces[vector->n++].len = iov[i].iov_len;
		buf.len += iov[i].iov_len;
	}
	if (vector->n == 1) {
		buf.addr = vector->pieces[0].addr;
	} else if (vector->n) {
		buf.ops = &ops;
		buf.arg = vector;
		buf.pieces = vector->pieces;
		buf.npieces = vector->n;
	}
	return buf;
}

void tf_vector_gather(const struct iovec *iov, size_t count, void *to)
{
	char *at = to;

	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
}

void tf_vector_scatter(const struct tq_buf *buf, const void *from, size_t len)
{
	if (buf->ops)
		buf->ops->unpack(buf->arg, 0, from, len);
	else if (len)
		memcpy(buf->addr, from, len);
}

size_t tf_vector_len(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		if (__builtin_add_overflow(len, iov[i].iov_len, &len))
			return SIZE_MAX;
	}
	return len;
}
