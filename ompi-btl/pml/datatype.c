/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatype.h"

#include <assert.h>
#include <string.h>

#include "log.h"
#include "pml.h"

static void position(opal_convertor_t *convertor, uint64_t offset)
{
	size_t at = offset;

	opal_convertor_set_position(convertor, &at);
	assert(at == offset);
}

/* Packs at most `len` bytes, and only whole elements. Returns how many bytes it packed. */
static size_t pack_elements(struct mca_pml_tupleq_buf *buf, void *to, size_t len)
{
	struct iovec iov = {.iov_base = to, .iov_len = len};
	uint32_t n = 1;
	size_t max = len;

	opal_convertor_pack(&buf->convertor, &iov, &n, &max);
	return max;
}

/*
 * Packs the next `len` bytes. The convertor doesn't split an element, but the end of these bytes
 * may: the element is then packed into `cut`, and the next bytes begin with its rest.
 */
static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	struct mca_pml_tupleq_buf *buf = arg;
	size_t n;

	if (offset == 0) {
		position(&buf->convertor, 0);
		buf->cut_len = 0;
	}
	while (len) {
		if (buf->cut_len) {
			n = len < buf->cut_len ? len : buf->cut_len;
			memcpy(to, buf->cut + buf->cut_at, n);
			buf->cut_at += n;
			buf->cut_len -= n;
		} else {
			n = pack_elements(buf, to, len);
			if (n == 0) {
				buf->cut_at = 0;
				buf->cut_len = pack_elements(buf, buf->cut, sizeof(buf->cut));
				assert(buf->cut_len);
			}
		}
		to = (char *)to + n;
		len -= n;
	}
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	struct mca_pml_tupleq_buf *buf = arg;
	struct iovec iov = {.iov_base = (void *)from, .iov_len = len};
	uint32_t n = 1;
	size_t max = len;

	position(&buf->convertor, offset);
	opal_convertor_unpack(&buf->convertor, &iov, &n, &max);
	assert(max == len);
}

/* Appends a piece, or extends the last one. Returns false if there are too many. */
static bool add_piece(struct mca_pml_tupleq_buf *buf, const struct iovec *iov, unsigned most)
{
	struct tq_piece *last = buf->tq.npieces ? &buf->pieces[buf->tq.npieces - 1] : NULL;

	if (last && (char *)last->addr + last->len == iov->iov_base) {
		last->len += iov->iov_len;
		return true;
	}
	if (buf->tq.npieces == most)
		return false;
	buf->pieces[buf->tq.npieces++] =
		(struct tq_piece){.addr = iov->iov_base, .len = iov->iov_len};
	return true;
}

/*
 * Lists the pieces of the message's memory if they are few. Pieces that Open MPI lists one by one
 * may follow one another, so it is asked for more than are allowed, but not for all of a large
 * type.
 */
static void find_pieces(struct mca_pml_tupleq_buf *buf, unsigned most)
{
	struct iovec iov[4 * TQ_MAX_PIECES];
	uint32_t n = sizeof(iov) / sizeof(iov[0]), i;
	uint64_t found = 0;
	size_t len = buf->tq.len;

	opal_convertor_raw(&buf->convertor, iov, &n, &len);
	for (i = 0; i < n && add_piece(buf, &iov[i], most); i++)
		found += iov[i].iov_len;
	if (found != buf->tq.len)
		buf->tq.npieces = 0;
}

static const struct tq_buf_ops gaps_ops = {.pack = pack, .unpack = unpack};

int mca_pml_tupleq_buf_init_gaps(struct mca_pml_tupleq_buf *buf, const void *addr, size_t count,
				 ompi_datatype_t *type, bool send)
{
	unsigned most;
	size_t len;
	int rc;

	OBJ_CONSTRUCT(&buf->convertor, opal_convertor_t);
	if (send)
		rc = opal_convertor_copy_and_prepare_for_send(
			ompi_mpi_local_convertor, &type->super, count, addr, 0, &buf->convertor);
	else
		rc = opal_convertor_copy_and_prepare_for_recv(
			ompi_mpi_local_convertor, &type->super, count, addr, 0, &buf->convertor);
	if (rc != OPAL_SUCCESS) {
		OBJ_DESTRUCT(&buf->convertor);
		return rc;
	}
	opal_convertor_get_packed_size(&buf->convertor, &len);
	OMPI_DATATYPE_RETAIN(type);
	buf->type = type;
	buf->tq = (struct tq_buf){.len = len, .ops = &gaps_ops, .arg = buf, .pieces = buf->pieces};
	most = tq_max_pieces(mca_pml_tupleq.ep, len);
	/* Each element with gaps is at least one piece. */
	if (count <= most)
		find_pieces(buf, most);
	return OMPI_SUCCESS;
}

void mca_pml_tupleq_buf_fini_gaps(struct mca_pml_tupleq_buf *buf)
{
	OBJ_DESTRUCT(&buf->convertor);
	OMPI_DATATYPE_RELEASE(buf->type);
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
