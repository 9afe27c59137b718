/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * windows.h - memory windows, and a place to bind them at.
 */
#ifndef T_WINDOWS_H
#define T_WINDOWS_H

#include "util.h"

#define T_REGION 16384 /* bytes of the region */
#define T_PART   4096  /* bytes of it that windows are bound to, and where these begin */

/* Memory, and a connection whose end b binds windows to it. */
struct t_place {
	struct t_pair pair;
	struct t_buf region;
};

/* Returns a new window in the device's domain. */
struct ibv_mw *t_mw(struct t_dev *dev, enum ibv_mw_type type);
struct t_place t_place(struct t_dev *dev, int access);
void t_place_free(struct t_place *place);
/* Returns the part of a region that windows are bound to. */
struct ibv_mw_bind_info t_part(const struct t_buf *region, unsigned access);
/* Binds by ibv_bind_mw(). Returns the status. */
enum ibv_wc_status t_bind_1(struct t_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info);
/* Binds by posting. Returns the status. */
enum ibv_wc_status t_bind_2(struct t_qp *qp, struct ibv_mw *mw, uint32_t key,
			    struct ibv_mw_bind_info info);
/* Posts a local invalidation. Returns its status. */
enum ibv_wc_status t_invalidate(struct t_qp *qp, uint32_t key);
/* Returns the status of an operation of n bytes by end a, whose peer is the one that binds. */
enum ibv_wc_status t_try(struct t_pair *p, enum ibv_wr_opcode op, uint64_t addr, uint32_t key,
			 size_t n);
/* Brings a pair that is in error back to RTS. */
void t_mend(struct t_pair *p);
/* Checks that an access is refused, and mends the pair. */
void t_refused(struct t_pair *p, enum ibv_wr_opcode op, uint64_t addr, uint32_t key, size_t n);

#endif
