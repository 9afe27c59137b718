/* SPDX-License-Identifier: BSD-3-Clause */
/* ud.h - shared by the parts of test_ud: a pair of UD QPs. */
#ifndef T_UD_H
#define T_UD_H

#include "util.h"

extern const struct t_spec ud_spec;

/* A pair of UD QPs and the way from a to b. */
struct ud_way {
	struct t_pair p;
	struct ibv_ah *ah;
	struct ibv_sge to;
};

struct ud_way ud_way(struct t_dev *dev, bool grh);
void ud_way_free(struct ud_way *way);
/* Returns a send request from a to b. */
struct ibv_send_wr ud_wr(struct ud_way *way, uint64_t id, struct ibv_sge *sge);
/* Sends a message and expects it in receive recv_id, so that earlier messages which have not come
 * are known to be lost. */
void ud_marker(struct ud_way *way, uint64_t recv_id);

/* ---- tests in ud_multicast.c ---- */

/* Checks a group: every attached QP gets a datagram once, and no other QP does. */
void ud_test_multicast(void **state);

#endif
