/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of MPI datatypes as buffers of the library. */
#ifndef TUPLEQ_PML_DATATYPE_H
#define TUPLEQ_PML_DATATYPE_H

#include "series.h"

#include <tupleq/tupleq.h>

#include "gpu.h"

struct mca_pml_tupleq_gaps;

/*
 * A buffer. `gaps` is in use only if tq.ops is set, which means memory with gaps: the adapter
 * gathers and scatters it if it consists of a few pieces; otherwise Open MPI's convertor packs and
 * unpacks it. The memory for that is large, so it isn't in each request, or on a caller's stack.
 */
struct mca_pml_tupleq_buf {
	struct tq_buf tq;
	struct mca_pml_tupleq_gaps *gaps;
};

/* Initialises a buffer of memory with gaps. Returns 0 or an OMPI error. */
int mca_pml_tupleq_buf_init_gaps(struct mca_pml_tupleq_buf *buf, const void *addr, size_t count,
				 ompi_datatype_t *type, bool send);
void mca_pml_tupleq_buf_fini_gaps(struct mca_pml_tupleq_buf *buf);
/* Returns MPI_ERR_BUFFER; the first call also logs why. */
int mca_pml_tupleq_refuse_gpu(void);

/* Returns true if the first piece of the message's memory is in a GPU's memory. */
static inline bool mca_pml_tupleq_buf_is_gpu(const void *addr, size_t count,
					     const ompi_datatype_t *type)
{
	return mca_pml_tupleq_is_gpu((const char *)addr + type->super.true_lb) && count &&
	       type->super.size;
}

/* Initialises a buffer of memory without gaps. Returns false if the memory has gaps or is a GPU's.
 */
static inline bool mca_pml_tupleq_buf_init_plain(struct tq_buf *buf, const void *addr, size_t count,
						 ompi_datatype_t *type)
{
	if (OPAL_UNLIKELY(mca_pml_tupleq_buf_is_gpu(addr, count, type)))
		return false;
	if (OPAL_UNLIKELY(count && !series_datatype_is_contiguous(type, count)))
		return false;
	buf->addr = (char *)addr + type->super.true_lb;
	buf->len = count * type->super.size;
	buf->ops = NULL;
	buf->arg = NULL;
	return true;
}

/* Initialises a buffer. Returns 0 or an OMPI error. */
static inline int mca_pml_tupleq_buf_init(struct mca_pml_tupleq_buf *buf, const void *addr,
					  size_t count, ompi_datatype_t *type, bool send)
{
	if (OPAL_LIKELY(mca_pml_tupleq_buf_init_plain(&buf->tq, addr, count, type)))
		return OMPI_SUCCESS;
	if (mca_pml_tupleq_buf_is_gpu(addr, count, type))
		return mca_pml_tupleq_refuse_gpu();
	return mca_pml_tupleq_buf_init_gaps(buf, addr, count, type, send);
}

static inline void mca_pml_tupleq_buf_fini(struct mca_pml_tupleq_buf *buf)
{
	if (OPAL_UNLIKELY(buf->tq.ops != NULL))
		mca_pml_tupleq_buf_fini_gaps(buf);
}

#endif
