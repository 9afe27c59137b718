/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a memory descriptor or a list entry: contiguous, or pieces. */
#ifndef P4_REGION_H
#define P4_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include <portals4.h>
#include <tupleq/tupleq.h>

struct p4_region {
	void *start;      /* contiguous memory; NULL with pieces */
	ptl_iovec_t *iov; /* pieces: a copy of the user's array */
	unsigned npieces;
	ptl_size_t length; /* in bytes */
};

/* Part of a region as a buffer of libtupleq; must stay while an operation uses it. */
struct p4_window {
	const struct p4_region *region;
	ptl_size_t offset;
};

/* Fills in a region from the fields `start`, `length`, and PTL_IOVEC in `options`.
 * Returns PTL_OK, PTL_ARG_INVALID or PTL_NO_SPACE. */
int p4_region_init(struct p4_region *region, void *start, ptl_size_t length, unsigned options,
		   int max_iovecs);
void p4_region_fini(struct p4_region *region);
/* Returns the address of a byte of the region; NULL beyond the last piece. */
void *p4_region_at(const struct p4_region *region, ptl_size_t offset);
/* Returns [offset, offset + len), which is in the region, as a buffer. *window is set if the buffer
 * needs it. */
struct tq_buf p4_region_buf(const struct p4_region *region, ptl_size_t offset, ptl_size_t len,
			    struct p4_window *window);
/* Copies out of, and into, the region. */
void p4_region_read(const struct p4_region *region, ptl_size_t offset, void *to, size_t len);
void p4_region_write(const struct p4_region *region, ptl_size_t offset, const void *from,
		     size_t len);

#endif
