/* SPDX-License-Identifier: BSD-3-Clause */
/* A user's buffer of a datatype as the library's. */
#ifndef TUPLEQ_PML_DATATYPE_H
#define TUPLEQ_PML_DATATYPE_H

#include "series.h"

#include <tupleq/tupleq.h>

#include "gpu.h"

/*
 * tq.ops says whether the rest is in use: memory with gaps is gathered and scattered by the adapter
 * if it is a few pieces, else read and written through Open MPI's convertor, and the type is kept
 * until that is over.
 */
struct mca_pml_tupleq_buf {
	struct tq_buf tq;
	ompi_datatype_t *type;
	opal_convertor_t convertor;
	/* Of an element that the end of a piece cut: what comes next, cut_len bytes at cut_at. */
	size_t cut_at, cut_len;
	char cut[64];
	struct tq_piece pieces[TQ_MAX_PIECES];
};

int mca_pml_tupleq_buf_init_gaps(struct mca_pml_tupleq_buf *buf, const void *addr, size_t count,
				 ompi_datatype_t *type, bool send);
void mca_pml_tupleq_buf_fini_gaps(struct mca_pml_tupleq_buf *buf);
int mca_pml_tupleq_refuse_gpu(void);

/* Of a message's memory the first piece is asked about. */
static inline bool mca_pml_tupleq_buf_is_gpu(const void *addr, size_t count,
					     const ompi_datatype_t *type)
{
	return mca_pml_tupleq_is_gpu((const char *)addr + type->super.true_lb) && count &&
	       type->super.size;
}

/* Memory without gaps; false: it is not that. */
static inline bool mca_pml_tupleq_buf_plain(struct tq_buf *buf, const void *addr, size_t count,
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

/* 0 or an OMPI error. */
static inline int mca_pml_tupleq_buf_init(struct mca_pml_tupleq_buf *buf, const void *addr,
					  size_t count, ompi_datatype_t *type, bool send)
{
	if (OPAL_LIKELY(mca_pml_tupleq_buf_plain(&buf->tq, addr, count, type)))
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
