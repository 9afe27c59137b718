/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatype.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "pml.h"

/* The description of memory with gaps. The type is retained until the operation ends. */
struct mca_pml_tupleq_gaps {
	ompi_datatype_t *type;
	opal_convertor_t convertor;
	/* For packing: an element of which only the beginning was asked for. Its last cut_len
	 * bytes, from cut_at, come next. */
	size_t cut_at, cut_len;
	char cut[64];
	struct tq_piece pieces[TQ_MAX_PIECES];
	/* Pieces that Open MPI lists one by one. They may follow one another, so it is asked for
	 * more than are allowed, but not for all of a large type. */
	struct iovec listed[4 * TQ_MAX_PIECES];
};

static void position(opal_convertor_t *convertor, uint64_t offset)
{
	size_t at = offset;

	opal_convertor_set_position(convertor, &at);
	assert(at == offset);
}

/* Packs at most `len` bytes, and only whole elements. Returns how many bytes it packed. */
static size_t pack_elements(struct mca_pml_tupleq_gaps *gaps, void *to, size_t len)
{
	struct iovec iov = {.iov_base = to, .iov_len = len};
	uint32_t n = 1;
	size_t max = len;

	opal_convertor_pack(&gaps->convertor, &iov, &n, &max);
	return max;
}

/*
 * Packs the next `len` bytes. The convertor doesn't split an element, but the end of these bytes
 * may: the element is then packed into `cut`, and the next bytes begin with its rest.
 */
static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	struct mca_pml_tupleq_gaps *gaps = arg;
	size_t n;

	if (offset == 0) {
		position(&gaps->convertor, 0);
		gaps->cut_len = 0;
	}
	while (len) {
		if (gaps->cut_len) {
			n = len < gaps->cut_len ? len : gaps->cut_len;
			memcpy(to, gaps->cut + gaps->cut_at, n);
			gaps->cut_at += n;
			gaps->cut_len -= n;
		} else {
			n = pack_elements(gaps, to, len);
			if (n == 0) {
				gaps->cut_at = 0;
				gaps->cut_len = pack_elements(gaps, gaps->cut, sizeof(gaps->cut));
				assert(gaps->cut_len);
			}
		}
		to = (char *)to + n;
		len -= n;
	}
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	struct mca_pml_tupleq_gaps *gaps = arg;
	struct iovec iov = {.iov_base = (void *)from, .iov_len = len};
	uint32_t n = 1;
	size_t max = len;

	position(&gaps->convertor, offset);
	opal_convertor_unpack(&gaps->convertor, &iov, &n, &max);
	assert(max == len);
}

/* Appends a piece, or extends the last one. Returns false if there are too many. */
static bool add_piece(struct mca_pml_tupleq_buf *buf, const struct iovec *iov, unsigned most)
{
	struct tq_piece *pieces = buf->gaps->pieces;
	struct tq_piece *last = buf->tq.npieces ? &pieces[buf->tq.npieces - 1] : NULL;

	if (last && (char *)last->addr + last->len == iov->iov_base) {
		last->len += iov->iov_len;
		return true;
	}
	if (buf->tq.npieces == most)
		return false;
	pieces[buf->tq.npieces++] = (struct tq_piece){.addr = iov->iov_base, .len = iov->iov_len};
	return true;
}

/* Lists the pieces of the message's memory if they are few. */
static void find_pieces(struct mca_pml_tupleq_buf *buf, unsigned most)
{
	struct iovec *iov = buf->gaps->listed;
	uint32_t n = sizeof(buf->gaps->listed) / sizeof(*iov), i;
	uint64_t found = 0;
	size_t len = buf->tq.len;

	opal_convertor_raw(&buf->gaps->convertor, iov, &n, &len);
	for (i = 0; i < n && add_piece(buf, &iov[i], most); i++)
		found += iov[i].iov_len;
	if (found != buf->tq.len)
		buf->tq.npieces = 0;
}

static const struct tq_buf_ops gaps_ops = {.pack = pack, .unpack = unpack};

int mca_pml_tupleq_buf_init_gaps(struct mca_pml_tupleq_buf *buf, const void *addr, size_t count,
				 ompi_datatype_t *type, bool send)
{
	struct mca_pml_tupleq_gaps *gaps = malloc(sizeof(*gaps));
	unsigned most;
	size_t len;
	int rc;

	if (!gaps)
		return OMPI_ERR_OUT_OF_RESOURCE;
	OBJ_CONSTRUCT(&gaps->convertor, opal_convertor_t);
	if (send)
		rc = opal_convertor_copy_and_prepare_for_send(
			ompi_mpi_local_convertor, &type->super, count, addr, 0, &gaps->convertor);
	else
		rc = opal_convertor_copy_and_prepare_for_recv(
			ompi_mpi_local_convertor, &type->super, count, addr, 0, &gaps->convertor);
	if (rc != OPAL_SUCCESS) {
		OBJ_DESTRUCT(&gaps->convertor);
		free(gaps);
		return rc;
	}
	opal_convertor_get_packed_size(&gaps->convertor, &len);
	OMPI_DATATYPE_RETAIN(type);
	gaps->type = type;
	buf->gaps = gaps;
	buf->tq =
		(struct tq_buf){.len = len, .ops = &gaps_ops, .arg = gaps, .pieces = gaps->pieces};
	most = tq_max_pieces(mca_pml_tupleq.ep, len);
	/* Each element with gaps is at least one piece. */
	if (count <= most)
		find_pieces(buf, most);
	return OMPI_SUCCESS;
}

void mca_pml_tupleq_buf_fini_gaps(struct mca_pml_tupleq_buf *buf)
{
	OBJ_DESTRUCT(&buf->gaps->convertor);
	OMPI_DATATYPE_RELEASE(buf->gaps->type);
	free(buf->gaps);
	buf->tq.ops = NULL;
}

int mca_pml_tupleq_refuse_gpu(void)
{
	static bool said;

	/* Once only: a program that goes on after errors may send many such messages. */
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		mca_pml_tupleq_log(
			NULL, TQ_LOG_ERROR,
			"A message's buffer is in a GPU's memory or in managed memory, which "
			"TupleQ doesn't support. Copy it to the host's memory, or use another PML "
			"(ucx, for example).");
	return MPI_ERR_BUFFER;
}
