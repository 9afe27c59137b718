/* SPDX-License-Identifier: BSD-3-Clause */
#include "region.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int p4_region_init(struct p4_region *region, void *start, ptl_size_t length, unsigned options,
		   int max_iovecs)
{
	const ptl_iovec_t *iov = start;

	*region = (struct p4_region){0};
	if (!(options & PTL_IOVEC)) {
		/* The whole address space, from NULL, is allowed. */
		if (!start && length && length != PTL_SIZE_MAX)
			return PTL_ARG_INVALID;
		region->start = start;
		region->length = length;
		return PTL_OK;
	}
	if (length > (ptl_size_t)max_iovecs || (length && !iov))
		return PTL_ARG_INVALID;
	for (ptl_size_t i = 0; i < length; i++) {
		if (iov[i].iov_len && !iov[i].iov_base)
			return PTL_ARG_INVALID;
		region->length += iov[i].iov_len;
	}
	region->iov = malloc((length ? length : 1) * sizeof(*iov));
	if (!region->iov)
		return PTL_NO_SPACE;
	if (length)
		memcpy(region->iov, iov, length * sizeof(*iov));
	region->npieces = (unsigned)length;
	return PTL_OK;
}

void p4_region_fini(struct p4_region *region)
{
	free(region->iov);
}

/* Finds the piece with byte `*offset`, which becomes the offset in the piece. Returns npieces if
 * the byte is beyond the end. */
static unsigned piece_at(const struct p4_region *region, ptl_size_t *offset)
{
	unsigned i;

	for (i = 0; i < region->npieces && *offset >= region->iov[i].iov_len; i++)
		*offset -= region->iov[i].iov_len;
	return i;
}

void *p4_region_at(const struct p4_region *region, ptl_size_t offset)
{
	unsigned i;

	if (!region->iov)
		return (char *)((uintptr_t)region->start + offset);
	i = piece_at(region, &offset);
	return i < region->npieces ? (char *)region->iov[i].iov_base + offset : NULL;
}

/* Copies between the region and contiguous memory. */
static void copy(const struct p4_region *region, ptl_size_t offset, char *memory, size_t len,
		 bool write)
{
	size_t part;
	char *place;
	unsigned i;

	if (!region->iov) {
		place = p4_region_at(region, offset);
		if (len)
			memcpy(write ? place : memory, write ? memory : place, len);
		return;
	}
	for (i = piece_at(region, &offset); len && i < region->npieces; i++, offset = 0) {
		part = region->iov[i].iov_len - offset;
		if (part > len)
			part = len;
		place = (char *)region->iov[i].iov_base + offset;
		memcpy(write ? place : memory, write ? memory : place, part);
		memory += part;
		len -= part;
	}
}

void p4_region_read(const struct p4_region *region, ptl_size_t offset, void *to, size_t len)
{
	copy(region, offset, to, len, false);
}

void p4_region_write(const struct p4_region *region, ptl_size_t offset, const void *from,
		     size_t len)
{
	copy(region, offset, (char *)(uintptr_t)from, len, true);
}

static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	const struct p4_window *window = arg;

	p4_region_read(window->region, window->offset + offset, to, len);
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	const struct p4_window *window = arg;

	p4_region_write(window->region, window->offset + offset, from, len);
}

struct tq_buf p4_region_buf(const struct p4_region *region, ptl_size_t offset, ptl_size_t len,
			    struct p4_window *window)
{
	static const struct tq_buf_ops ops = {pack, unpack};
	ptl_size_t in_piece = offset;
	unsigned i;

	if (!len)
		return (struct tq_buf){0};
	if (!region->iov)
		return (struct tq_buf){.addr = p4_region_at(region, offset), .len = len};
	i = piece_at(region, &in_piece);
	if (region->iov[i].iov_len - in_piece >= len)
		return (struct tq_buf){.addr = (char *)region->iov[i].iov_base + in_piece,
				       .len = len};
	*window = (struct p4_window){region, offset};
	return (struct tq_buf){.len = len, .ops = &ops, .arg = window};
}
