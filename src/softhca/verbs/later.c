/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * later.c - functions that libibverbs has from rdma-core 59 on (IBVERBS_1.15 to 1.18). None is
 * supported, and each must fail here, because the real library would take our objects for its own.
 *
 * The functions have names of their own and get the public symbols by an asm label, because headers
 * may or may not declare these. No argument is looked at.
 */
#include "verbs.h"

#include <errno.h>

#define REFUSE(name, type, failure)                                                         \
	__attribute__((visibility("default"))) type shca_later_##name(void) __asm__(#name); \
	type shca_later_##name(void)                                                        \
	{                                                                                   \
		errno = EOPNOTSUPP;                                                         \
		return failure;                                                             \
	}

/* 59: handles of DMA hints, and registrations by a struct */
REFUSE(ibv_alloc_dmah, void *, NULL)
REFUSE(ibv_dealloc_dmah, int, EOPNOTSUPP)
REFUSE(ibv_reg_mr_ex, void *, NULL)

/* 62 */
REFUSE(ibv_dm_export_dmabuf_fd, int, -1)
REFUSE(ibv_query_port_speed, int, EOPNOTSUPP)

/* 64 and 65: buffers that the library allocates */
REFUSE(ibv_alloc_buf, void *, NULL)
REFUSE(ibv_reg_buf_mr, void *, NULL)
REFUSE(ibv_export_buf_dmabuf_fd, int, -1)
REFUSE(ibv_free_buf, void, )

/* 65: counters of completions */
REFUSE(_ibv_query_comp_cntr_caps, int, EOPNOTSUPP)
REFUSE(ibv_create_comp_cntr, void *, NULL)
REFUSE(ibv_destroy_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_qp_attach_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_set_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_set_err_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_inc_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_inc_err_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_read_comp_cntr, int, EOPNOTSUPP)
REFUSE(ibv_read_err_comp_cntr, int, EOPNOTSUPP)
