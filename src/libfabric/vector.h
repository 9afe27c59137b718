/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in pieces. */
#ifndef TF_VECTOR_H
#define TF_VECTOR_H

#include <stddef.h>
#include <sys/uio.h>

#include <tupleq/tupleq.h>

#define TF_IOV_LIMIT 8

struct tf_vector {
	unsigned n;
	struct tq_piece pieces[TF_IOV_LIMIT];
};

/* Returns the buffer that the `count` pieces make (at most TF_IOV_LIMIT). The vector must stay as
 * long as the buffer is used. */
struct tq_buf tf_vector_pieces(struct tf_vector *vector, const struct iovec *iov, size_t count);
/* The same, in line for one piece. */
static inline struct tq_buf tf_vector_buf(struct tf_vector *vector, const struct iovec *iov,
					  size_t count)
{
	if (count != 1 || !iov->iov_len)
		return tf_vector_pieces(vector, iov, count);
	return (struct tq_buf){.addr = iov->iov_base, .len = iov->iov_len};
}
/* Copies the pieces to or from contiguous memory. */
void tf_vector_gather(const struct iovec *iov, size_t count, void *to);
void tf_vector_scatter(const struct tq_buf *buf, const void *from, size_t len);
/* Returns the length of the pieces together, SIZE_MAX if it is longer than that. */
size_t tf_vector_len(const struct iovec *iov, size_t count);

#endif
